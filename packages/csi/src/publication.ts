import type { BigIntStats } from 'node:fs';

import {
  AtomicVolume,
  type AtomicVolumeOptions,
  type Clock,
  type FileSystem,
  type VolumeEntry,
  type VolumeWriteResult,
} from 'resilient-watcher';
import { DATA_LINK, isEntryName, promised, withDeadline } from 'resilient-watcher/internal';

import type { ServiceAccountTokens } from './tokens.js';

/** The contents of a volume. */
export interface ProducedVolume {
  /** The files by key, an object or a `Map` as for `AtomicVolume.write`. */
  readonly files: Readonly<Record<string, VolumeEntry>> | ReadonlyMap<string, VolumeEntry>;
  /** When the contents must be produced again, epoch ms. Default: when the tokens or `freshForMs` require it. */
  readonly expiresAt?: number | undefined;
}

/** Produces the contents of a volume, for example from a vault. It should stop when `signal` aborts. */
export type VolumeProducer = (context: {
  readonly tokens: ServiceAccountTokens;
  readonly signal: AbortSignal;
}) => ProducedVolume | Promise<ProducedVolume>;

interface PublicationSettings {
  readonly volume: AtomicVolumeOptions;
  readonly freshForMs: number;
  readonly produceTimeoutMs: number;
  readonly clock: Clock;
  readonly fs: FileSystem;
}

/** The last good contents of a publication. */
interface Contents {
  readonly revision: string;
  readonly tokens: ServiceAccountTokens;
  /** Monotonic ms. The contents are fresh until this or `expiresAt` (epoch ms) is reached. */
  readonly freshUntil: number;
  readonly expiresAt: number;
}

/** One volume at one target path, and how fresh its contents are. */
export class Publication {
  readonly volumeId: string;
  readonly #volume: AtomicVolume;
  readonly #settings: PublicationSettings;
  /** Undefined unless this process produced them. */
  #contents: Contents | undefined;

  constructor(volumeId: string, targetPath: string, settings: PublicationSettings) {
    const { volume, clock, fs } = settings;
    this.volumeId = volumeId;
    this.#volume = new AtomicVolume(targetPath, { ...volume, clock, fs });
    this.#settings = settings;
  }

  get targetPath(): string {
    return this.#volume.directory;
  }

  /** The revision that this process last published or found unchanged; null after a failure. */
  get revision(): string | null {
    return this.#contents?.revision ?? null;
  }

  /** The published revision, if it is still fresh and in place. */
  async freshRevision(tokens: ServiceAccountTokens): Promise<string | undefined> {
    const { clock } = this.#settings;
    const contents = this.#contents;
    if (!contents?.tokens.equals(tokens)) return undefined;
    if (clock.monotonic() >= contents.freshUntil || clock.now() >= contents.expiresAt) return undefined;
    // The directory may have been emptied, or another one mounted over it.
    return (await this.publishedRevision()) === contents.revision ? contents.revision : undefined;
  }

  /** The revision that readers see: a directory in the volume itself. Undefined if there is none. */
  async publishedRevision(): Promise<string | undefined> {
    const { fs } = this.#settings;
    try {
      const revision = await promised<string>((done) => fs.readlink(`${this.targetPath}/${DATA_LINK}`, done));
      if (!isEntryName(revision)) return undefined;
      const path = `${this.targetPath}/${revision}`;
      const stat = await promised<BigIntStats>((done) => fs.lstat(path, { bigint: true }, done));
      return stat.isDirectory() ? revision : undefined;
    } catch {
      return undefined;
    }
  }

  async produce(
    produce: VolumeProducer,
    tokens: ServiceAccountTokens,
    wanted: AbortSignal,
  ): Promise<VolumeWriteResult> {
    const { clock, freshForMs, produceTimeoutMs } = this.#settings;
    const begun = clock.monotonic();
    const produced: unknown = await withDeadline((signal) => produce({ tokens, signal }), {
      clock,
      timeoutMs: produceTimeoutMs,
      signal: wanted,
      late: () => new Error(`it took over ${produceTimeoutMs} ms`),
    });
    if (!isProduced(produced)) throw new TypeError('it must return an object with "files"');
    const { files, expiresAt = Infinity } = produced;
    if (!isDate(expiresAt)) throw new TypeError('its "expiresAt" must be a number, epoch ms');
    const result = await this.#volume.write(files);
    this.#contents = {
      revision: result.revision,
      tokens,
      freshUntil: begun + freshForMs,
      expiresAt: Math.min(expiresAt, tokens.expiresAt),
    };
    return result;
  }

  /** Makes the next `publish()` produce the contents again. */
  expire(): void {
    this.#contents = undefined;
  }

  clear(): Promise<void> {
    return this.#volume.clear();
  }
}

function isDate(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}

function isProduced(value: unknown): value is ProducedVolume {
  return typeof value === 'object' && value !== null && 'files' in value;
}
