/**
 * Publishing a set of files as one revision:
 * announce → create and fill the revision → swap → links → sync → sweep.
 *
 * Writers in several processes need no lock, because they share no name: a revision and the pending `..data` link that
 * announces it are new each time, the last writer to swap wins, and the links are aligned with whatever `..data` points
 * to then. The pending link exists from before the revision is created until the swap, and identifies its owner; what
 * neither the pending link of a running writer nor `..data` points to belongs to nobody, and is removed.
 *
 * Everything is done relative to the open volume and the open revision (see `HeldDirectory`): a user who can write to
 * the volume can spoil a write, but not redirect it.
 */
import { errnoOf } from '../core/errno.js';
import type { WriteError } from './write-error.js';
import type { Clock } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { call, type Effects } from '../fs/effects.js';
import type { SynchronousCalls } from '../fs/locality.js';
import { DATA_LINK, revisionName, topOf } from '../fs/volume-layout.js';
import { enterDirectory, makeDirectories, type HeldDirectory } from './held-directory.js';
import { MAX_NAMES, type Durability } from './pending-file.js';
import { emptyDirectory, removeTree } from './remove-tree.js';
import { ifExists, runAll } from './tolerated-failures.js';
import { giveUp, removeUnfinished, temporaryName } from './temporary-name.js';
import type { VolumeFiles } from './volume-files.js';
import {
  alignLinks,
  openRevision,
  publishedRevision,
  readLink,
  removeLinks,
  type KnownRevision,
} from './volume-links.js';
import { fillDirectory, holdsFiles, makePrivateDirectory, replaced } from './volume-revision.js';
import { VolumeSweep } from './volume-sweep.js';
import { Refusal, WriteProgress } from './write-progress.js';

/** The result of a write to a volume. */
export interface VolumeWriteResult {
  /** Whether there is a new revision; false when the published one holds these very files already. */
  readonly changed: boolean;
  /** What `..data` points to now. */
  readonly revision: string;
}

/** How a volume is written; see the options of `AtomicVolume`. */
interface VolumeSettings {
  readonly durability: Durability;
  readonly createDirectory: boolean;
  readonly graceMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** A revision that is being made, and the link that announces it. */
interface PendingRevision {
  readonly name: string;
  readonly link: string;
  readonly directory: HeldDirectory;
}

/** Writes to one volume, one at a time. */
export class VolumeWriter {
  readonly sweeper: VolumeSweep;
  readonly #directory: string;
  readonly #settings: VolumeSettings;
  readonly #onSweepFailure: (error: WriteError) => void;

  /** @param onSweepFailure receives the error when a sweep fails; what was published stays published. */
  constructor(directory: string, settings: VolumeSettings, onSweepFailure: (error: WriteError) => void) {
    this.#directory = directory;
    this.#settings = settings;
    this.#onSweepFailure = onSweepFailure;
    this.sweeper = new VolumeSweep(settings.clock, settings.graceMs);
  }

  /** Publishes these files. Throws a `WriteError`. */
  *publish(files: VolumeFiles, calls: SynchronousCalls): Effects<VolumeWriteResult> {
    const progress = new WriteProgress(this.#directory);
    let volume: HeldDirectory | undefined;
    try {
      volume = yield* this.#open(progress, calls);
      return yield* this.#publish(volume, files, progress, calls);
    } catch (cause) {
      throw progress.failure(cause);
    } finally {
      if (volume) yield* volume.close();
    }
  }

  /** Removes everything that was published: `..data` first, so that no reader finds a part. Throws a `WriteError`. */
  *clear(calls: SynchronousCalls): Effects<void> {
    const progress = new WriteProgress(this.#directory);
    let volume: HeldDirectory | undefined;
    try {
      progress.step = 'open-directory';
      volume = yield* ifExists(enterDirectory(this.#directory, calls));
      if (!volume) return;
      progress.step = 'remove';
      yield* this.#removeAll(volume, progress, calls.now);
      yield* this.#sync(volume, progress);
    } catch (cause) {
      throw progress.failure(cause);
    } finally {
      if (volume) yield* volume.close();
    }
  }

  *#removeAll(volume: HeldDirectory, progress: WriteProgress, now: bigint | undefined): Effects<void> {
    const stat = yield* ifExists(call('lstat', volume.at(DATA_LINK)));
    const isDirectory = stat?.isDirectory() === true;
    if (!isDirectory) yield* ifExists(call('unlink', volume.at(DATA_LINK)));
    progress.published = true;
    yield* runAll([
      () => removeLinks(volume, new Set()),
      () => this.#removeRevisions(volume, progress, now, 0),
    ]);
    if (isDirectory) throw new Refusal('ERR_WRITE_NOT_FILE', `its "${DATA_LINK}" is a directory; remove it`);
  }

  /** Removes revisions whose grace period is over. Never throws. */
  *sweep(calls: SynchronousCalls): Effects<void> {
    const progress = new WriteProgress(this.#directory);
    progress.published = true;
    try {
      progress.step = 'open-directory';
      const volume = yield* ifExists(enterDirectory(this.#directory, calls));
      if (!volume) return;
      try {
        yield* this.#sweep(volume, progress, calls.now);
      } finally {
        yield* volume.close();
      }
    } catch (error) {
      this.#onSweepFailure(progress.failure(error));
    }
  }

  *#open(progress: WriteProgress, calls: SynchronousCalls): Effects<HeldDirectory> {
    progress.step = 'open-directory';
    const volume = yield* this.#settings.createDirectory
      ? ifExists(enterDirectory(this.#directory, calls))
      : enterDirectory(this.#directory, calls);
    if (volume) return volume;
    progress.step = 'create-directory';
    const durable = this.#settings.durability === 'full';
    const created = yield* makeDirectories(this.#directory, { readable: true, durable });
    yield* calls.enter(created.stat, created.at('.'));
    return created;
  }

  *#publish(
    volume: HeldDirectory,
    files: VolumeFiles,
    progress: WriteProgress,
    calls: SynchronousCalls,
  ): Effects<VolumeWriteResult> {
    progress.step = 'resolve';
    yield* this.#refuseDirectories(volume, files, progress);
    const current = yield* publishedRevision(volume);
    const names = [...new Set([...files.keys()].map(topOf))];
    progress.step = 'compare';
    if (current !== undefined && (yield* this.#holds(volume, current, files))) {
      yield* this.#complete(volume, progress, { revision: current, names, swapped: false, now: calls.now });
      return { changed: false, revision: current };
    }
    let next: { readonly revision: string; readonly now: bigint };
    try {
      next = yield* this.#replace(volume, files, progress, calls);
    } catch (error) {
      // What writers that were killed left may take the room.
      if (progress.published !== null) yield* this.#sweep(volume, progress, calls.now);
      throw error;
    }
    if (current !== undefined) this.sweeper.retire(current);
    yield* this.#complete(volume, progress, { ...next, names, swapped: true });
    return { changed: true, revision: next.revision };
  }

  /** Links, sync and sweep. A link that cannot be changed does not keep old revisions from being removed. */
  *#complete(
    volume: HeldDirectory,
    progress: WriteProgress,
    published: KnownRevision & { readonly swapped: boolean; readonly now: bigint | undefined },
  ): Effects<void> {
    progress.step = 'link';
    let failure: WriteError | undefined;
    let changed = published.swapped;
    try {
      if (yield* alignLinks(volume, published)) changed = true;
    } catch (error) {
      failure = progress.failure(error);
      changed = true;
    }
    if (changed) yield* this.#sync(volume, progress);
    yield* this.#sweep(volume, progress, published.now);
    if (failure) throw failure;
  }

  /** A file or a wrong link at the name of a key is replaced; a directory may hold what nobody wants to lose. */
  *#refuseDirectories(volume: HeldDirectory, files: VolumeFiles, progress: WriteProgress): Effects<void> {
    for (const name of [DATA_LINK, ...new Set([...files.keys()].map(topOf))]) {
      const stat = yield* ifExists(call('lstat', volume.at(name)));
      if (!stat?.isDirectory()) continue;
      progress.path = `${this.#directory}/${name}`;
      throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory, where a link has to be; remove it');
    }
  }

  *#holds(volume: HeldDirectory, current: string, files: VolumeFiles): Effects<boolean> {
    const revision = yield* openRevision(volume, current);
    if (!revision) return false;
    try {
      return yield* holdsFiles(revision, files);
    } finally {
      yield* revision.close();
    }
  }

  /** Makes a new revision and swaps it in. */
  *#replace(
    volume: HeldDirectory,
    files: VolumeFiles,
    progress: WriteProgress,
    calls: SynchronousCalls,
  ): Effects<{ revision: string; now: bigint }> {
    const pending = yield* this.#announce(volume, progress);
    const { name, link, directory } = pending;
    try {
      yield* fillDirectory(directory, files, this.#settings.durability, progress);
      progress.step = 'rename';
      yield* volume.assertInPlace();
      const announced = yield* readLink(volume, link);
      const stat = yield* ifExists(call('lstat', volume.at(name)));
      if (announced !== name || !stat || !directory.is(stat)) throw replaced(name);
      progress.isRenaming = true;
      yield* this.#swap(volume, pending);
      progress.published = true;
      return { revision: name, now: stat.ctimeNs };
    } catch (error) {
      // As with a file (see `abandon`). A revision that may be published is left to the sweep of the next write.
      const isKnown = !progress.isRenaming || calls.isLocal || (yield* removeUnfinished(volume.at(link)));
      if (isKnown) yield* this.#withdraw(volume, name, link, directory);
      else progress.published = null;
      throw error;
    } finally {
      yield* directory.close();
    }
  }

  /** Links to the revision that is to come, then creates its directory. */
  *#announce(volume: HeldDirectory, progress: WriteProgress): Effects<PendingRevision> {
    const { clock, random } = this.#settings;
    progress.step = 'create';
    for (let attempt = 1; ; attempt += 1) {
      const name = revisionName(clock.now(), random);
      const link = temporaryName('link');
      try {
        yield* call('symlink', name, volume.at(link));
        return { name, link, directory: yield* makePrivateDirectory(volume, name) };
      } catch (error) {
        const isTaken = errnoOf(error) === 'EEXIST';
        if (isTaken) yield* removeUnfinished(volume.at(link));
        else yield* this.#withdraw(volume, name, link, undefined);
        if (!isTaken || attempt === MAX_NAMES) throw error;
      }
    }
  }

  *#swap(volume: HeldDirectory, { name, link }: PendingRevision): Effects<void> {
    try {
      yield* call('rename', volume.at(link), volume.at(DATA_LINK));
    } catch (error) {
      // When the answer of a server is lost, the rename is sent again, and fails the second time.
      if ((yield* publishedRevision(volume)) !== name) throw error;
    }
  }

  /** The link goes last: it identifies the owner of the directory. */
  *#withdraw(
    volume: HeldDirectory,
    name: string,
    link: string,
    directory: HeldDirectory | undefined,
  ): Effects<void> {
    try {
      // Wherever it was moved to.
      if (directory) yield* emptyDirectory(directory);
      yield* removeTree(volume, name);
      yield* ifExists(call('unlink', volume.at(link)));
    } catch {
      // The next write removes it.
      giveUp(link);
    }
  }

  *#sync(volume: HeldDirectory, progress: WriteProgress): Effects<void> {
    progress.step = 'sync-directory';
    if (this.#settings.durability === 'full') yield* volume.sync();
  }

  /** Removes what nobody needs, as far as that is possible. */
  *#sweep(volume: HeldDirectory, { published }: WriteProgress, now: bigint | undefined): Effects<void> {
    const progress = new WriteProgress(this.#directory);
    progress.step = 'remove';
    progress.published = published;
    try {
      yield* this.#removeRevisions(volume, progress, now);
    } catch (error) {
      this.#onSweepFailure(progress.failure(error));
    }
  }

  /** @param graceMs default: that of the volume. */
  *#removeRevisions(
    volume: HeldDirectory,
    progress: WriteProgress,
    now: bigint | undefined,
    graceMs?: number,
  ): Effects<void> {
    const failure = yield* this.sweeper.run(volume, now, graceMs);
    if (!failure) return;
    progress.path = `${this.#directory}/${failure.revision}`;
    throw failure.error;
  }
}
