/** The published revision of a volume: a directory of files in the volume itself. */
import { DATA_LINK, isEntryName } from '../fs/volume-layout.js';
import { isEqual } from './calls.js';
import { hasAttributes } from './file-attributes.js';
import type { HeldDirectory } from './held-directory.js';
import { wait, type Steps } from '../core/scheduling/steps.js';
import { isOfAnotherUser } from './trust.js';
import type { VolumeFile, VolumeFiles } from './volume-files.js';

const WRITABLE_BY_OTHERS = 0o022n;

/** What `..data` points to; undefined when it is missing or not a link. */
export function publishedRevision(volume: HeldDirectory): Steps<string | undefined> {
  return volume.readlink(DATA_LINK);
}

/** The names in a revision; undefined if it is missing, a link, or not in the volume itself. */
export function* listRevision(volume: HeldDirectory, revision: string): Steps<string[] | undefined> {
  const directory = yield* openRevision(volume, revision);
  const entries = directory && (yield* directory.during(directory.list()));
  return entries?.map(({ name }) => name);
}

/** Whether a revision holds exactly these files, with these modes and owners, and no other user may change it. */
export function holdsFiles(volume: HeldDirectory, revision: string, files: VolumeFiles): Steps<boolean> {
  return isEqual(holdsOnly(volume, revision, files));
}

function* openRevision(volume: HeldDirectory, revision: string): Steps<HeldDirectory | undefined> {
  return isEntryName(revision) ? yield* volume.enter(revision) : undefined;
}

function* holdsOnly(volume: HeldDirectory, revision: string, files: VolumeFiles): Steps<boolean> {
  const root = yield* openRevision(volume, revision);
  if (!root) return false;
  let count = 0;
  const compare = function* (directory: HeldDirectory, below: string): Steps<boolean> {
    const { stat } = directory;
    if (isOfAnotherUser(stat) && !(yield* directory.isOurs('.', stat))) return false;
    if (stat.mode & WRITABLE_BY_OTHERS) return false;
    for (const entry of yield* directory.list()) {
      const key = `${below}${entry.name}`;
      if (entry.isDirectory()) {
        const inside = yield* directory.enter(entry.name);
        if (!inside || !(yield* inside.during(compare(inside, `${key}/`)))) return false;
      } else {
        const file = files.get(key);
        if (!file || !(yield* holdsFile(directory, entry.name, file))) return false;
        count += 1;
      }
      yield* directory.pause();
    }
    return true;
  };
  return (yield* root.during(compare(root, ''))) && count === files.size;
}

function* holdsFile(directory: HeldDirectory, name: string, wanted: VolumeFile): Steps<boolean> {
  const stat = yield* wait(directory.lstat(name));
  if (!stat?.isFile() || !hasAttributes(wanted, stat)) return false;
  // A requested owner may be another user; others may not be, because the owner can change the file.
  if (!wanted.owner && isOfAnotherUser(stat) && !(yield* directory.isOurs(name, stat))) return false;
  return yield* directory.holds(name, stat, wanted.bytes);
}
