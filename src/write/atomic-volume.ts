import { basename, resolve } from 'node:path';

import type { Clock, Scheduled } from '../core/clock.js';
import { Component, type ComponentEvents, type ComponentStatus } from '../core/component.js';
import { notAVolume } from '../fs/target-error.js';
import type { FileSystem } from '../core/file-system.js';
import {
  componentName,
  checkPath,
  fileSystem,
  flag,
  matching,
  milliseconds,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { Random } from '../core/random.js';
import { runAsync, type Effects } from '../fs/effects.js';
import { SynchronousCalls } from '../fs/locality.js';
import { stableRead } from '../fs/stable-read.js';
import { READ_LIMITS } from '../fs/targets/read-limits.js';
import { isMode, isOwner, type Owner } from './file-attributes.js';
import type { Durability } from './pending-file.js';
import { checkFiles, type VolumeEntries } from './volume-files.js';
import { VolumeTarget } from './volume-target.js';
import { VolumeWriter, type VolumeWriteResult } from './volume-writer.js';
import { processWrites } from './write-queue.js';

/** Options of {@link AtomicVolume}. */
export interface AtomicVolumeOptions {
  /** Mode of files that have none of their own, 0 to 0o7777, independent of the umask. Default 0o644, as in Kubernetes. */
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
   * one after another and do not start over at ENOENT. What is left when the process ends is removed by the next write.
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
  /** What the volume is called in its status. Default: the base name of its directory. */
  readonly name?: string | undefined;
  /** Closes the volume when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: `node:fs`. */
  readonly fs?: FileSystem | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Digits in the names of revisions. Default: `Math.random`. */
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
  /** Replaced revisions that wait for the end of `graceMs`. */
  readonly retiredRevisions: number;
}

/** Kubernetes' `defaultMode` of ConfigMap, Secret and projected volumes. */
const DEFAULT_MODE = 0o644;

const OPTIONS = {
  mode: matching<number>(DEFAULT_MODE, 'an integer from 0 to 0o7777', isMode),
  owner: matching<Owner | undefined>(undefined, 'an object { uid, gid } of integers >= 0', isOwner),
  durability: oneOf<Durability>('full', ['full', 'file', 'none']),
  graceMs: milliseconds(0),
  createDirectory: flag(false),
  ...READ_LIMITS,
  name: componentName(undefined),
  fs: fileSystem('open', 'readlink', 'symlink', 'rename'),
  ...PORT_OPTIONS,
};

/**
 * A directory of files that change all at once: readers that go through `..data` see the whole old set or the whole new
 * set. The layout is that of a mounted ConfigMap: whatever reads those can read it, and a volume written by kubelet can
 * be taken over. Requires symbolic links: Linux and macOS, not Windows.
 *
 * The directory itself is never replaced or renamed, only its entries: it may be mounted in a container. Writes within
 * a process run one after another. Writers in several processes never mix their sets: the last to swap wins.
 *
 * It is used without `start()`. Events: `error` (`ListenerError`) only; operations reject.
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
  readonly #settings: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #writer: VolumeWriter;
  #removal: Scheduled | undefined;
  #revision: string | null = null;
  #writtenAt: number | null = null;

  /**
   * Performs no I/O.
   * @throws {TypeError | RangeError} for an invalid argument.
   */
  constructor(directory: string, options?: AtomicVolumeOptions) {
    const path = resolve(checkPath('AtomicVolume', 'directory', directory));
    const settings = resolveOptions('AtomicVolume', options, OPTIONS);
    const { name = basename(path), signal, clock } = settings;
    super({ kind: 'AtomicVolume', name, signal, clock });
    this.directory = path;
    this.#settings = settings;
    this.#writer = new VolumeWriter(path, settings, (error) => this.recordError(error));
  }

  /**
   * Makes these files, by key (`app.yaml`, `conf.d/app.yaml`), the contents of the volume. If it holds them already,
   * with the same modes and owners, there is no new revision; missing and wrong links are repaired all the same.
   *
   * @throws {WriteError} (rejects) unless `published` is true, readers see the old set.
   * @throws {TypeError | RangeError} (rejects) for anything but a plain object or a `Map`, a key that kubelet refuses,
   * or an invalid value, which is not shown. The old set stays.
   * @throws {ClosedError} (rejects) after `close()`.
   */
  async write(files: VolumeEntries): Promise<VolumeWriteResult> {
    const wanted = checkFiles('AtomicVolume', files, this.#settings);
    const result = await this.trace(
      'write',
      { path: this.directory },
      () => this.#inTurn((calls) => this.#writer.publish(wanted, calls)),
      ({ changed }) => (changed ? 'written' : 'unchanged'),
    );
    this.#revision = result.revision;
    this.#writtenAt = this.#settings.clock.now();
    return result;
  }

  /**
   * All files of one revision, however often it is swapped meanwhile. A volume that does not exist or was never written
   * has none.
   *
   * @throws {TargetError} (rejects) when it cannot be read, is never stable (`ERR_TARGET_IO`), exceeds a limit
   * (`ERR_TARGET_TOO_LARGE`), or a link leads out of the volume (`ERR_TARGET_LAYOUT`).
   * @throws {ClosedError} (rejects) after `close()`.
   */
  async read(): Promise<VolumeContents> {
    return this.#use(async () => {
      const { directory } = this;
      const snapshot = await stableRead(new VolumeTarget(directory, this.#settings), this.#settings);
      if (snapshot.kind === 'missing') return { revision: undefined, files: new Map() };
      if (snapshot.kind === 'file') throw notAVolume(directory);
      const files = new Map<string, Buffer>();
      for (const [key, { content }] of snapshot.files) if (content) files.set(key, content);
      return { revision: snapshot.revision, files };
    });
  }

  /**
   * Removes everything that was published, at once and without a grace period. The directory stays, with whatever else
   * is in it. To publish an empty set, use `write({})`.
   *
   * @throws {WriteError} (rejects) when something cannot be removed; everything else is.
   * @throws {ClosedError} (rejects) after `close()`.
   */
  async clear(): Promise<void> {
    await this.#inTurn((calls) => this.#writer.clear(calls));
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
      retiredRevisions: this.#writer.sweeper.waiting,
      lastError,
    };
  }

  override get state(): AtomicVolumeStatus['state'] {
    return this.status().state;
  }

  protected override get purpose(): string {
    return `use the volume "${this.directory}"`;
  }

  /** Replaced revisions that are still there stay until the next write. */
  protected override onClose(): void {
    this.#removal?.cancel();
    this.#removal = undefined;
  }

  /** Runs an operation, for whose end `close()` waits. The first one starts the volume. */
  async #use<T>(operation: () => Promise<T>): Promise<T> {
    await this.start();
    try {
      return await this.scope.track(operation());
    } catch (error) {
      this.recordError(asError(error));
      throw error;
    }
  }

  #inTurn<T>(steps: (calls: SynchronousCalls) => Effects<T>): Promise<T> {
    return this.#use(() =>
      processWrites.run(this.directory, {
        coalesce: false,
        work: async () => {
          const calls = new SynchronousCalls(this.#settings.fs);
          try {
            return await runAsync(steps(calls), this.#settings.fs, calls.allows, calls.width);
          } finally {
            this.#scheduleRemoval();
          }
        },
      }),
    );
  }

  /** Sweeps when the grace period of the first retired revision is over. */
  #scheduleRemoval(): void {
    this.#removal?.cancel();
    this.#removal = undefined;
    const delayMs = this.#writer.sweeper.nextRemovalMs;
    if (delayMs === undefined || this.lifecycleState === 'closed') return;
    const sweep = (): void => {
      // It can only fail because the volume is closed.
      this.#inTurn((calls) => this.#writer.sweep(calls)).catch(() => undefined);
    };
    this.#removal = this.#settings.clock.schedule(sweep, delayMs, { ref: false });
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
