import { DATA_LINK, topOf } from '../fs/volume-layout.js';
import { isSame, type HeldDirectory } from './held-directory.js';
import { PendingFile } from './pending-file.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { removeUnfinished, temporaryName } from './sweep.js';
import { isNobody } from './trust.js';
import type { VolumeFile, VolumeFiles } from './volume-files.js';
import { publishedRevision } from './volume-revision.js';
import { emptyDirectory } from './volume-sweep.js';
import { Refusal } from './write-error.js';

/** As in kubelet's volumes: every user may enter the directories, and the mode of each file says who may read it. */
const DIRECTORY_MODE = 0o755;

/** No other user can enter a directory before it is complete. */
const DIRECTORY_MODE_WHILE_PENDING = 0o700;

/** Publishes these files as a new revision of this name. Readers see the previous one until the swap. */
export function* publishRevision(volume: HeldDirectory, files: VolumeFiles, name: string): Steps<void> {
  const { write } = volume;
  const link = temporaryName('link');
  let directory: HeldDirectory | undefined;
  try {
    write.step = 'create';
    // Before the directory: other writers remove revisions to which no link points.
    yield* volume.symlink(name, link);
    directory = yield* makePrivateDirectory(volume, name);
    yield* fill(directory, files);
    yield* swap(volume, link, name, directory);
  } catch (error) {
    const isWithdrawn = yield* removeUnfinished(volume, link);
    // As with a file (see `abandon` in replace-file.ts). If the revision is not published, the next write removes it.
    if (isWithdrawn || volume.isLocal) write.published = false;
    if (directory && write.published === false) yield* discard(volume, directory);
    throw error;
  } finally {
    if (directory) yield* wait(directory.close());
  }
}

/** Writes the files into a new directory, and opens it to readers. */
function* fill(directory: HeldDirectory, files: VolumeFiles): Steps<void> {
  const { write } = directory;
  const { path } = write;
  for (const [name, entry] of entriesOf(files)) {
    write.path = `${path}/${name}`;
    write.step = 'create-directory';
    if (entry instanceof Map) {
      const child = yield* makePrivateDirectory(directory, name);
      yield* child.during(fill(child, entry));
    } else yield* writeFile(directory, name, entry);
    yield* directory.pause();
  }
  write.path = path;
  write.step = 'chmod';
  yield* directory.setMode(DIRECTORY_MODE);
  write.step = 'sync-directory';
  yield* directory.sync();
}

function* writeFile(directory: HeldDirectory, name: string, { bytes, mode, owner }: VolumeFile): Steps<void> {
  yield* directory.assertInPlace();
  // Nobody else can enter the directory, so the file can have its mode from the beginning.
  const file = yield* PendingFile.create(directory, name, mode & 0o777);
  try {
    // A new file belongs to the user of this process. If the directory does not, it was replaced, and its owner could
    // read what is written.
    const { stat } = directory;
    const isOurs = (yield* file.owner()) === stat.uid;
    if (!isOurs || (isNobody('uid', stat.uid) && !(yield* directory.isOurs('.', stat)))) throw replaced(name);
    yield* file.write(bytes);
    yield* file.finish({ mode, owner, required: { mode: true, owner: true } });
  } catch (error) {
    yield* file.discard();
    throw error;
  }
}

/** Turns `..data` to the revision, if its name still leads to the directory that was filled. */
function* swap(volume: HeldDirectory, link: string, name: string, directory: HeldDirectory): Steps<void> {
  const { write } = volume;
  write.step = 'rename';
  yield* volume.assertInPlace();
  const announced = yield* volume.readlink(link);
  const stat = yield* wait(volume.lstat(name));
  if (announced !== name || !stat || !isSame(stat, directory.stat)) throw replaced(name);
  write.published = null;
  try {
    yield* wait(volume.rename(link, DATA_LINK));
  } catch (error) {
    // If the answer of a server was lost, the rename was sent again, and failed the second time.
    if ((yield* publishedRevision(volume)) !== name) throw error;
  }
  write.published = true;
}

/** Removes what was written, wherever the directory was moved to. A sweep removes what is left. */
function* discard(volume: HeldDirectory, directory: HeldDirectory): Steps<void> {
  try {
    yield* emptyDirectory(volume, directory);
  } catch {
    // The next write removes it.
  }
}

/** Creates a directory and opens it. */
function* makePrivateDirectory(parent: HeldDirectory, name: string): Steps<HeldDirectory> {
  const directory = yield* parent.create(name, DIRECTORY_MODE_WHILE_PENDING);
  if (directory) return directory;
  throw replaced(name);
}

/** The refusal to publish a revision that somebody else moved or replaced. */
function replaced(name: string): Refusal {
  const what = `another process moved or replaced "${name}" while it was written`;
  return new Refusal('ERR_WRITE_CONFLICT', `${what}; no other user should be able to write here`);
}

/** A file, or the files of a directory by name. */
type NewEntry = VolumeFile | Map<string, VolumeFile>;

/** What is in a directory with these files, by name. */
function entriesOf(files: VolumeFiles): [name: string, entry: NewEntry][] {
  const entries = new Map<string, NewEntry>();
  for (const [key, file] of files) {
    const name = topOf(key);
    const known = entries.get(name);
    const inside = known instanceof Map ? known : new Map<string, VolumeFile>();
    entries.set(name, name === key ? file : inside.set(key.slice(name.length + 1), file));
  }
  return [...entries];
}
