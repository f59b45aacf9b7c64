/** Sets of files that change all at once, laid out as kubelet does for ConfigMaps and Secrets. */
import { resolve } from 'node:path';

import { readFiles, type RevisionFile, type RevisionFiles } from './volume-revision.js';
import { VolumeWriter, type VolumeWriteResult } from './volume-writer.js';
import { Backoff } from '../core/backoff.js';
import { TargetError, errnoOf, isDenied } from '../core/errors.js';
import {
  checkPath,
  fileSystem,
  flag,
  matching,
  milliseconds,
  oneOf,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { Clock, Scheduled } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';
import { call, runAsync, wait, type Effects } from '../fs/effects.js';
import { DATA_LINK, cleanKeys } from '../fs/volume-layout.js';
import { Pace } from './pace.js';
import { isMode, isOwner, type Durability, type Owner } from './pending-file.js';
import { processWrites } from './write-queue.js';
import { isChunk, toBytes, type WriteChunk } from './write-source.js';

/** Options of {@link AtomicVolume}. */
export interface AtomicVolumeOptions {
  /** Mode of files that have none of their own, 0 to 0o7777, whatever the umask. Default 0o644, as in Kubernetes. */
  readonly mode?: number | undefined;
  /** Owner of files that have none of their own. Default: the process. */
  readonly owner?: Owner | undefined;
  /**
   * What a power cut cannot take back once a write is done. `'full'` (default): the new revision. `'file'`: old
   * or new revision, with whole files. `'none'` (kubelet's way): nothing; enough on tmpfs.
   */
  readonly durability?: Durability | undefined;
  /**
   * For how long a replaced revision stays for readers who resolved `..data` before the swap and open a file
   * after it, ms. Default 0: it is removed at once, as kubelet does. Raise it (a second is plenty) when readers
   * open several files one after another and do not start over at ENOENT. After the end of the process, the
   * next write removes what it left.
   */
  readonly graceMs?: number | undefined;
  /** Makes the volume's directory if it is missing, and those above it. Default false. */
  readonly createDirectory?: boolean | undefined;
  /** The file system. Default: the machine's. */
  readonly fs?: FileSystem | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** The digits in the names of revisions. Default: the machine's. */
  readonly random?: Random | undefined;
}

/** A file of a volume: its contents, or these with a mode and owner of its own. */
export type VolumeEntry =
  | WriteChunk
  | {
      readonly data: WriteChunk;
      readonly mode?: number | undefined;
      readonly owner?: Owner | undefined;
    };

/** What a volume holds at one instant. */
export interface VolumeContents {
  /** What `..data` points to; undefined when nothing is published. */
  readonly revision: string | undefined;
  /** The contents by key, all of this revision. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * How often a read is begun anew because the revision was replaced meanwhile. Each time is a swap by somebody
 * else; at the tenth, the waits have grown to the longest.
 */
const MAX_READS = 50;

/** A swap by removing and linking anew leaves a gap of microseconds; then nothing is published. */
const READS_OF_NOTHING = 5;
const FIRST_READ_DELAY_MS = 1;
const LONGEST_READ_DELAY_MS = 20;

/**
 * A directory of files that change all at once: readers who go through `..data` see all of the old set or all
 * of the new one. The layout is that of a mounted ConfigMap, so whatever reads those can read it, and a volume
 * made by kubelet can be taken over. Needs symbolic links: Linux and macOS, not Windows.
 *
 * The directory itself is never replaced or renamed, only what is in it: a container may have it mounted.
 * Writes within a process run one after another. Writers in several processes cannot tear each other's sets:
 * the last to swap wins.
 *
 * ```ts
 * const volume = new AtomicVolume('/run/tls', { createDirectory: true });
 * await volume.write({ 'tls.crt': certificate, 'tls.key': { data: key, mode: 0o400 } });
 * const { files } = await volume.read();
 * ```
 */
export class AtomicVolume {
  /** Absolute. */
  readonly directory: string;
  readonly #settings: ReturnType<typeof resolveVolumeOptions>;
  readonly #writer: VolumeWriter;
  #removal: Scheduled | undefined;

  /**
   * Touches no file.
   * @throws {TypeError | RangeError} for a wrong argument.
   */
  constructor(directory: string, options?: AtomicVolumeOptions) {
    this.directory = resolve(checkPath('AtomicVolume', 'directory', directory));
    this.#settings = resolveVolumeOptions(options);
    this.#writer = new VolumeWriter(this.directory, this.#settings);
  }

  /**
   * Makes these files, by key (`app.yaml`, `conf.d/app.yaml`), what the volume holds. When it holds them already
   * with the same modes and owners, there is no new revision; links that are missing or wrong are repaired all
   * the same.
   *
   * @throws {WriteError} when it cannot be done; unless `published`, readers see the old set.
   * @throws {TypeError | RangeError} for a key that kubelet refuses, or a wrong value (it is not shown).
   */
  async write(files: Readonly<Record<string, VolumeEntry>>): Promise<VolumeWriteResult> {
    const wanted = this.#check(files);
    return this.#inTurn((pace) => this.#writer.publish(wanted, pace));
  }

  /**
   * All files of one revision, however often it is swapped meanwhile. A volume that is missing or was never
   * written has none.
   *
   * @throws {TargetError} when it cannot be read, or never stands still (ERR_TARGET_IO).
   */
  async read(): Promise<VolumeContents> {
    const pace = new Pace();
    return runAsync(this.#read(pace), this.#settings.fs, pace.atOnce);
  }

  /**
   * Takes away all that was published, at once and without grace; the directory and what else is in it stay.
   * For an empty set that is published, `write({})`.
   *
   * @throws {WriteError} when it cannot be done.
   */
  async clear(): Promise<void> {
    await this.#inTurn((pace) => this.#writer.clear(pace));
  }

  #inTurn<T>(steps: (pace: Pace) => Effects<T>): Promise<T> {
    return processWrites.run(this.directory, {
      coalesce: false,
      work: async () => {
        const pace = new Pace();
        try {
          return await runAsync(steps(pace), this.#settings.fs, pace.atOnce);
        } finally {
          this.#planRemoval();
        }
      },
    });
  }

  /** Sweeps when the first of the retired revisions has had its grace. */
  #planRemoval(): void {
    this.#removal?.cancel();
    this.#removal = undefined;
    const delayMs = this.#writer.nextRemovalMs;
    if (delayMs === undefined) return;
    this.#removal = this.#settings.clock.schedule(
      () => void this.#inTurn(() => this.#writer.sweep()),
      delayMs,
      { ref: false },
    );
  }

  *#read(pace: Pace): Effects<VolumeContents> {
    const { clock, random } = this.#settings;
    const backoff = new Backoff({
      firstDelayMs: FIRST_READ_DELAY_MS,
      maxDelayMs: LONGEST_READ_DELAY_MS,
      random,
    });
    yield* pace.enter(this.directory);
    for (let attempt = 1, nothing = 0; attempt <= MAX_READS; attempt += 1) {
      try {
        const revision = yield* this.#revision();
        if (revision !== undefined) {
          const files = yield* readFiles(resolve(this.directory, revision));
          // Unchanged, so nobody had begun to remove it while it was read.
          if ((yield* this.#revision()) === revision) return { revision, files };
        } else if ((nothing += 1) === READS_OF_NOTHING) return { revision, files: new Map() };
      } catch (error) {
        if (!isUnstable(error)) throw this.#readFailure(error);
      }
      yield* wait(() => sleep(clock, backoff.next()));
    }
    throw this.#readFailure(new Error(`it was replaced during each of ${MAX_READS} attempts to read it`));
  }

  *#revision(): Effects<string | undefined> {
    try {
      return yield* call('readlink', `${this.directory}/${DATA_LINK}`);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  #readFailure(cause: unknown): TargetError {
    const isRefused = isDenied(cause);
    const what = cause instanceof Error ? cause.message : String(cause);
    return new TargetError(
      isRefused ? 'ERR_TARGET_ACCESS' : 'ERR_TARGET_IO',
      this.directory,
      `Cannot read the volume "${this.directory}": ${what}`,
      { cause },
    );
  }

  #check(files: unknown): RevisionFiles {
    if (typeof files !== 'object' || files === null || isChunk(files) || Array.isArray(files)) {
      throw new TypeError('AtomicVolume: files must be an object of contents by key');
    }
    const entries = Object.entries(files as Readonly<Record<string, unknown>>);
    const keys = cleanKeys(
      'AtomicVolume',
      entries.map(([key]) => key),
    );
    return new Map(
      entries.map(([, entry], index) => [keys[index] ?? '', this.#checkEntry(keys[index], entry)]),
    );
  }

  #checkEntry(key: string | undefined, entry: unknown): RevisionFile {
    const wrong = (wanted: string): TypeError =>
      new TypeError(`AtomicVolume: key ${JSON.stringify(key)} ${wanted}`);
    const given = (isChunk(entry) ? { data: entry } : Object(entry)) as Partial<
      Record<'data' | 'mode' | 'owner', unknown>
    >;
    const { data, mode = this.#settings.mode, owner = this.#settings.owner } = given;
    // What a wrong value is, is not shown: it may be a secret.
    if (!isChunk(data)) throw wrong('must hold a string, a Uint8Array, or { data } with one of them');
    if (!isMode(mode)) throw wrong('must have a mode from 0 to 0o7777');
    if (owner !== undefined && !isOwner(owner))
      throw wrong('must have an owner { uid, gid } of integers >= 0');
    return { bytes: toBytes(data), mode, owner };
  }
}

/** Whether a failed read means that the revision was removed while it was read. */
function isUnstable(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ESTALE'].includes(errnoOf(error) ?? '');
}

/** Kubernetes' `defaultMode` of ConfigMap, Secret and projected volumes. */
const DEFAULT_MODE = 0o644;

function resolveVolumeOptions(options: unknown) {
  return resolveOptions('AtomicVolume', options, {
    mode: matching<number>(DEFAULT_MODE, 'an integer from 0 to 0o7777', isMode),
    owner: matching<Owner | undefined>(undefined, 'an object { uid, gid } of integers >= 0', isOwner),
    durability: oneOf<Durability>('full', ['full', 'file', 'none']),
    graceMs: milliseconds(0),
    createDirectory: flag(false),
    fs: fileSystem('open', 'readlink', 'symlink', 'rename'),
    clock: PORT_OPTIONS.clock,
    random: PORT_OPTIONS.random,
  });
}
