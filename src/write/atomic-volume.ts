import { basename, insidePath, resolve, SLASH, told } from '../core/ports/platform-path.js';
import type { Clock, Scheduled } from '../core/ports/clock.js';
import { Component, type ComponentEvents, type ComponentStatus } from '../core/lifecycle/component.js';
import { notAVolume, targetError, TargetError } from '../fs/target-error.js';
import type { FileSystem } from '../core/ports/file-system.js';
import {
  nonEmptyString,
  checkPath,
  fileSystem,
  milliseconds,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options/options.js';
import { modeOption } from '../core/options/mode.js';
import type { Random } from '../core/ports/random.js';
import { redactError } from '../core/errors/resilient-error.js';
import { withoutTrailingSlashes } from '../fs/absolute-path.js';
import { READING_CALLS } from '../fs/calls.js';
import { Mounts } from '../fs/mounts.js';
import type { Snapshot } from '../fs/snapshot.js';
import { stableRead } from '../fs/stable-read.js';
import { PathTarget } from '../fs/targets/path.js';
import { revisionName } from '../fs/volume-layout.js';
import { READ_LIMITS } from '../fs/read-limits.js';
import type { Owner } from './file-attributes.js';
import type { HeldDirectory } from './held-directory.js';
import type { Durability } from './calls.js';
import { run, type Steps } from '../core/scheduling/steps.js';
import { checkFiles, type VolumeEntries, type VolumeFiles } from './volume-files.js';
import { sweepRevisions } from './volume-sweep.js';
import { failureOf } from './write-error.js';
import { SHARED_OPTIONS } from './write-options.js';
import { inTurn } from './write-queue.js';
import {
  clearVolume,
  ifThere,
  inVolume,
  syncVolume,
  writeVolume,
  type VolumeWriteResult,
} from './write-volume.js';

/** Options of {@link AtomicVolume}. */
export interface AtomicVolumeOptions {
  /**
   * Mode of files that have none of their own, 0 to 0o7777, independent of the umask. Default 0o644, as in Kubernetes.
   */
  readonly mode?: number | undefined;
  /** Owner of files that have none of their own. Default: the owner of the process. */
  readonly owner?: Owner | undefined;
  /**
   * What survives a power cut once a write is done. `'full'` (default): the new revision. `'file'`: the old or the new
   * revision, with complete files. `'none'` (as kubelet does): no guarantee; enough on tmpfs.
   */
  readonly durability?: Durability | undefined;
  /**
   * How long a replaced revision is kept for readers that resolved `..data` before the swap and open a file after it,
   * ms. Default 0: it is removed at once, as kubelet does. Set it (1000 is plenty) for readers that open several files
   * one after another and do not start over on ENOENT. A write by another object or process removes it at once.
   */
  readonly graceMs?: number | undefined;
  /** Creates the directory of the volume, and missing directories above it. Default false. */
  readonly createDirectory?: boolean | undefined;
  /** `read()` rejects for a file larger than this, bytes. Default 1 MiB. */
  readonly maxContentBytes?: number | undefined;
  /** `read()` rejects when all files together are larger than this, bytes. Default 64 MiB. */
  readonly maxTotalBytes?: number | undefined;
  /** `read()` rejects when there are more files. Default 16,384. */
  readonly maxFiles?: number | undefined;
  /** The name in its status. Default: the base name of its directory. */
  readonly name?: string | undefined;
  /** Closes the volume when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Anything with the calls of `node:fs`, which is the default. */
  readonly fs?: FileSystem | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** For the digits in the names of revisions. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

/** What a volume holds at one instant. */
export interface VolumeContents {
  /** What `..data` points to; undefined when nothing is published. */
  readonly revision: string | undefined;
  /** The contents by key, all of this revision. Can be given to `write()`. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** The status of an `AtomicVolume`. */
export interface AtomicVolumeStatus extends ComponentStatus {
  /** `idle` before the first use, `running`, or `closed`. */
  readonly state: 'idle' | 'running' | 'closed';
  /** Absolute. */
  readonly directory: string;
  /** What this object published last, or found published; null before its first write, and after `clear()`. */
  readonly revision: string | null;
  /** When this object wrote last, epoch ms; null before. */
  readonly writtenAt: number | null;
  /** How many replaced revisions are kept for their readers; see `graceMs`. */
  readonly retiredRevisions: number;
}

/** Kubernetes' `defaultMode` of ConfigMap, Secret and projected volumes. */
const VOLUME_MODE = 0o644;

const OPTIONS = {
  ...SHARED_OPTIONS,
  mode: modeOption<number>(VOLUME_MODE),
  graceMs: milliseconds(0),
  ...READ_LIMITS,
  name: nonEmptyString(undefined),
  fs: fileSystem<keyof FileSystem>(...READING_CALLS, 'symlink', 'rename', 'renameSync'),
  ...PORT_OPTIONS,
};

/**
 * A directory of files that change all at once: readers that go through `..data` see the whole old set or the whole new
 * set. The layout is that of a mounted ConfigMap: a program that reads those can read it, and it can take over a volume
 * that kubelet wrote. Requires symbolic links: Linux and macOS, not Windows.
 *
 * Only the entries of the directory are replaced, never the directory itself, so it may be mounted in a container.
 * Writes within a process run one after another. Writers in several processes never mix their sets: the last to swap
 * wins.
 *
 * `start()` is optional. The only event is `error` (`ListenerError`); operations that fail reject.
 *
 * ```ts
 * const volume = new AtomicVolume('/run/tls', { createDirectory: true });
 * await volume.write({ 'tls.crt': certificate, 'tls.key': { data: key, mode: 0o400 } });
 * const { files } = await volume.read();
 * ```
 */
export class AtomicVolume extends Component<ComponentEvents, AtomicVolumeStatus> {
  /** Absolute. */
  readonly directory: string;
  readonly #path: string;
  readonly #settings: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  /** The replaced revisions that are kept for their readers, with the timers that remove them. */
  readonly #retired = new Map<string, Scheduled>();
  #revision: string | null = null;
  #writtenAt: number | null = null;

  /**
   * Performs no I/O.
   * @throws {TypeError | RangeError} for an invalid argument.
   */
  constructor(directory: string | URL, options?: AtomicVolumeOptions) {
    const path = withoutTrailingSlashes(insidePath(checkPath('AtomicVolume', 'directory', directory)));
    const settings = resolveOptions('AtomicVolume', options, OPTIONS);
    const { name = basename(resolve(path)), signal, clock } = settings;
    super({ kind: 'AtomicVolume', name, signal, clock, description: { worksIdle: true } });
    this.directory = told(path);
    this.#path = path;
    this.#settings = settings;
  }

  /**
   * Publishes these files, by key (`app.yaml`, `conf.d/app.yaml`), as the contents of the volume. If the volume holds
   * them already, with the same modes and owners, no revision is created; missing and wrong links are still repaired.
   *
   * @throws {WriteError} (rejects) `published` says whether readers see the new set.
   * @throws {TypeError | RangeError} (rejects) for anything but a plain object or a `Map`, a key that kubelet refuses,
   * or an invalid value, which is not shown. The old set stays.
   * @throws {ClosedError} (rejects) after `close()`; the signal's reason when that has aborted.
   */
  async write(files: VolumeEntries): Promise<VolumeWriteResult> {
    const wanted = checkFiles('AtomicVolume', files, this.#settings);
    const result = await this.trace(
      'write',
      { path: this.directory },
      () => this.#inTurn(inVolume(this.#path, this.#settings, (volume) => this.#publish(volume, wanted))),
      ({ changed }) => (changed ? 'written' : 'unchanged'),
    );
    this.#revision = result.revision;
    this.#writtenAt = this.#settings.clock.now();
    return result;
  }

  /**
   * All files of one revision, however often it is swapped meanwhile. There are none if nothing is published: the
   * directory does not exist, or has no link `..data`.
   *
   * @throws {TargetError} (rejects) when it cannot be read, is never stable (`ERR_TARGET_IO`), exceeds a limit
   * (`ERR_TARGET_TOO_LARGE`), or a link leads out of the volume (`ERR_TARGET_LAYOUT`).
   * @throws {ClosedError} (rejects) after `close()`; the signal's reason when that has aborted.
   */
  async read(): Promise<VolumeContents> {
    return this.#use(async () => {
      const target = new PathTarget(this.#path, this.#settings);
      return contentsOf(await stableRead(target, this.#settings));
    });
  }

  /**
   * Removes everything that was published, at once and without a grace period. The directory and everything else in it
   * stay. To publish an empty set, use `write({})`.
   *
   * @throws {WriteError} (rejects) when something cannot be removed; everything else is.
   * @throws {ClosedError} (rejects) after `close()`; the signal's reason when that has aborted.
   */
  async clear(): Promise<void> {
    await this.#inExisting(clearVolume);
    this.#cancelRemovals();
    this.#retired.clear();
    this.#revision = null;
    this.#writtenAt = this.#settings.clock.now();
  }

  override status(): AtomicVolumeStatus {
    const { name, directory, lastError, lifecycleState } = this;
    return {
      name,
      state: lifecycleState === 'starting' ? 'running' : lifecycleState,
      directory,
      revision: this.#revision,
      writtenAt: this.#writtenAt,
      retiredRevisions: this.#retired.size,
      lastError,
    };
  }

  override get state(): AtomicVolumeStatus['state'] {
    return this.status().state;
  }

  protected override get purpose(): string {
    return `use the volume "${this.directory}"`;
  }

  /** A volume is often used without `close()`, so it is not listed among the running components. */
  protected override announce(): void {}

  /** Replaced revisions that are still kept stay until the next write. */
  protected override onClose(): void {
    this.#cancelRemovals();
  }

  #cancelRemovals(): void {
    for (const removal of this.#retired.values()) removal.cancel();
  }

  /** Runs an operation. The first one starts the volume; `close()` waits for all of them. */
  async #use<T>(operation: () => Promise<T>): Promise<T> {
    await this.start();
    try {
      return await this.lifetime.track(operation());
    } catch (error) {
      this.recordError(redactError(error));
      throw error;
    }
  }

  /** Runs the steps when all earlier ones of this process in this volume have ended. */
  #inTurn<T>(steps: Steps<T>): Promise<T> {
    const { fs } = this.#settings;
    const mount = Mounts.of(fs).at(this.#path).point;
    const write = { path: resolve(this.#path), fs, signal: undefined, mount };
    return this.#use(() => inTurn(write, () => run(steps)));
  }

  /** Does the work in the volume, if there is one. */
  #inExisting(work: (volume: HeldDirectory) => Steps<void>): Promise<void> {
    return this.#inTurn(ifThere(inVolume(this.#path, { ...this.#settings, createDirectory: false }, work)));
  }

  *#publish(volume: HeldDirectory, files: VolumeFiles): Steps<VolumeWriteResult> {
    const { clock, random } = this.#settings;
    try {
      return yield* writeVolume(volume, files, revisionName(clock.now(), random), (replaced) =>
        this.#retire(replaced),
      );
    } finally {
      // After a failure, too, unless the sync failed: what was written, and what killed writers left, takes space.
      const { published, step } = volume.write;
      if (published !== null && step !== 'sync-directory') yield* this.#sweep(volume);
    }
  }

  /** Removes the revisions that are no longer needed. A failure is only recorded. */
  *#sweep(volume: HeldDirectory): Steps<void> {
    try {
      yield* sweepRevisions(volume, this.#retired);
    } catch (error) {
      const { published } = volume.write;
      this.recordError(failureOf({ path: this.directory, step: 'remove', published }, error));
    }
  }

  /** Keeps a replaced revision until its grace period is over. */
  #retire(revision: string): void {
    const { clock, graceMs } = this.#settings;
    if (graceMs === 0) return;
    const remove = (): void => {
      this.#retired.delete(revision);
      // A failure is recorded, unless the volume is closed.
      this.#inExisting((volume) => this.#removeRetired(volume)).catch(() => undefined);
    };
    const removal = clock.schedule(remove, graceMs, { ref: false });
    this.#retired.set(revision, removal);
    if (this.lifecycleState === 'closed') removal.cancel();
  }

  *#removeRetired(volume: HeldDirectory): Steps<void> {
    volume.write.published = true;
    // That of the write may have failed.
    yield* syncVolume(volume);
    yield* this.#sweep(volume);
  }
}

/**
 * The contents in a snapshot of a volume. Files outside the volume are refused: anyone who can write to the volume
 * could otherwise make a privileged reader hand out any file.
 */
function contentsOf(snapshot: Snapshot): VolumeContents {
  const { path, kind } = snapshot;
  if (kind === 'file') throw notAVolume(path);
  const files = new Map<string, Buffer>();
  if (kind !== 'volume') return { revision: undefined, files };
  for (const [key, file] of snapshot.files) {
    const { content } = file;
    if (!file.realPath.startsWith(`${snapshot.realPath}${SLASH}`))
      throw targetError('ERR_TARGET_LAYOUT', file.path);
    if (!content) {
      const what = 'it is larger than maxFiles, maxContentBytes and maxTotalBytes allow';
      throw new TargetError('ERR_TARGET_TOO_LARGE', path, `Cannot read the volume "${path}": ${what}`);
    }
    files.set(key, content);
  }
  return { revision: snapshot.revision, files };
}
