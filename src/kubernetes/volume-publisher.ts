import { isAbsolute, normalize } from 'node:path';

import { AtomicVolume, type AtomicVolumeOptions } from '../write/atomic-volume.js';
import type { VolumeEntry } from '../write/volume-files.js';
import { withDeadline } from '../core/deadline.js';
import { ClosedError, errnoOf, KubernetesError, ResilientError } from '../core/errors.js';
import { Emitter } from '../core/emitter.js';
import { Scope } from '../core/scope.js';
import {
  callback,
  describe,
  fileSystem,
  matching,
  milliseconds,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import { withoutTokens } from '../token/token.js';
import { DATA_LINK } from '../fs/volume-layout.js';
import { ServiceAccountTokens } from './csi-tokens.js';

/** What a volume is to hold. */
export interface ProducedVolume {
  /** By key, as `AtomicVolume.write` takes them. */
  readonly files: Readonly<Record<string, VolumeEntry>>;
  /** From then on it is to be produced anew, epoch ms; default: by the tokens and `freshForMs` alone. */
  readonly expiresAt?: number | undefined;
}

/** Gets what a volume is to hold, such as from a vault. It should stop when `signal` aborts. */
export type VolumeProducer = (context: {
  readonly tokens: ServiceAccountTokens;
  readonly signal: AbortSignal;
}) => ProducedVolume | Promise<ProducedVolume>;

/** What became of one call of `publish`. */
export interface PublishedVolume {
  /**
   * `published`: new contents. `unchanged`: produced anew, the same as before. `skipped`: there was nothing to do.
   * `kept`: it failed, `error` says how, and the last good contents are still there.
   */
  readonly outcome: 'published' | 'unchanged' | 'skipped' | 'kept';
  /** What `..data` points to. */
  readonly revision: string;
  readonly error: ResilientError | undefined;
}

/** What a `VolumePublisher` tells. No event contains a token. */
export interface VolumePublisherEvents {
  published: [event: { readonly volumeId: string; readonly targetPath: string; readonly revision: string }];
  /** New contents could not be had; `kept` tells whether there are older ones. */
  failed: [
    event: {
      readonly volumeId: string;
      readonly targetPath: string;
      readonly error: ResilientError;
      readonly kept: boolean;
    },
  ];
  /** A listener failed. */
  error: [error: Error];
}

/** Options of `VolumePublisher`. */
export interface VolumePublisherOptions {
  /** Mode, owner, durability and grace of the volumes' files. On tmpfs `durability: 'none'` will do. */
  readonly volume?: Pick<AtomicVolumeOptions, 'mode' | 'owner' | 'durability' | 'graceMs'> | undefined;
  /**
   * For so long what was produced is taken to be fresh, if the tokens stay the same and `expiresAt` is not reached
   * before. Default 120 000, as the Secrets Store driver has it. Measured by a clock that nobody sets back.
   */
  readonly freshForMs?: number | undefined;
  /** A producer is given up after this long; default 90 000, since kubelet gives up on the driver after 120 s. */
  readonly produceTimeoutMs?: number | undefined;
  /**
   * Makes the directory and mounts what is to be mounted on it; called by each `publish`, once the path is known to
   * be good, so what is there already must be left as it is. Default: the directory has to be there.
   */
  readonly prepareTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  /** Undoes that, after the contents were taken away; not called for a directory that is gone. Default: nothing. */
  readonly removeTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  readonly clock?: Clock | undefined;
  readonly fs?: FileSystem | undefined;
}

const OPTIONS = {
  volume: matching<AtomicVolumeOptions>(
    {},
    'an object',
    (value) => typeof value === 'object' && value !== null,
  ),
  freshForMs: milliseconds(120_000),
  produceTimeoutMs: milliseconds(90_000, { min: 1 }),
  prepareTarget: callback<(targetPath: string) => void | Promise<void>>(() => {}),
  removeTarget: callback<(targetPath: string) => void | Promise<void>>(() => {}),
  clock: PORT_OPTIONS.clock,
  fs: fileSystem('open', 'readlink', 'symlink', 'rename', 'lstat'),
};

/** One target path with contents of ours. */
interface Publication {
  readonly volumeId: string;
  readonly volume: AtomicVolume;
  /** The last good contents, if this process produced them. */
  produced?: {
    readonly revision: string;
    readonly tokens: ServiceAccountTokens;
    /** Monotonic ms, and epoch ms: whichever comes first. */
    readonly freshUntil: number;
    readonly expiresAt: number;
  };
}

/**
 * What a CSI driver with `requiresRepublish` does in NodePublishVolume, which kubelet calls about once a minute for
 * as long as the pod lives, and in NodeUnpublishVolume. Calls for the same target path run one after another.
 *
 * | when                                                        | what `publish` does                             |
 * |-------------------------------------------------------------|-------------------------------------------------|
 * | same tokens, still fresh, and still there                   | nothing: `skipped`                              |
 * | anything else                                               | produces; `published`, or `unchanged`           |
 * | producing or writing fails, contents of before are there    | `kept`: resolves, and tells by `failed`          |
 * | the same, and there is nothing                              | rejects, so that kubelet does not start the pod |
 *
 * A failed republish is not an error for kubelet on purpose: kubelet takes it for an unmounted volume and removes
 * the directory from under the running pod (kubernetes/kubernetes#121271). The directory itself, and what is
 * mounted on it, is never replaced.
 */
export class VolumePublisher extends Emitter<VolumePublisherEvents> {
  readonly #options: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #publications = new Map<string, Publication>();
  /** For the calls of `publish` since the last `unpublish`, by target path: aborts when they are no longer wanted. */
  readonly #wanted = new Map<string, AbortController>();
  /** The last call for each target path. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #scope = new Scope();

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(options?: VolumePublisherOptions) {
    super();
    this.#options = resolveOptions('VolumePublisher', options, OPTIONS);
  }

  /**
   * Brings the volume up to date. Idempotent; to be called for each NodePublishVolume.
   *
   * @param options.tokens what `parseServiceAccountTokens` finds; other ones than before mean that it is produced
   * anew. As a function, what it throws is a failure like those of the producer, and what was good is kept.
   * @throws {KubernetesError} `ERR_CSI_TARGET` for a path that is not a directory to publish in, else `ERR_CSI_PRODUCE`.
   * @throws {WriteError} when it cannot be written and there is nothing older.
   * @throws {ClosedError} once closed, or unpublished meanwhile.
   */
  publish(
    volumeId: string,
    targetPath: string,
    produce: VolumeProducer,
    options: { readonly tokens?: ServiceAccountTokens | (() => ServiceAccountTokens) | undefined } = {},
  ): Promise<PublishedVolume> {
    const wanted = this.#wanted.get(targetPath) ?? new AbortController();
    this.#wanted.set(targetPath, wanted);
    return this.#inTurn(targetPath, async () => {
      wanted.signal.throwIfAborted();
      await this.#isDirectory(targetPath);
      await this.#options.prepareTarget(targetPath);
      if (!(await this.#isDirectory(targetPath))) throw badTarget(targetPath, 'does not exist');
      const publication = this.#publicationOf(volumeId, targetPath);
      try {
        const { tokens: given = new ServiceAccountTokens() } = options;
        const tokens = typeof given === 'function' ? given() : given;
        const revision = await this.#freshRevision(publication, tokens);
        if (revision !== undefined) return { outcome: 'skipped', revision, error: undefined };
        return await this.#produce(publication, produce, tokens, wanted.signal);
      } catch (thrown) {
        wanted.signal.throwIfAborted();
        return await this.#failed(publication, asResilient(volumeId, thrown));
      }
    });
  }

  /**
   * Tells a running producer to stop, takes the contents away, then the directory (`removeTarget`). Idempotent; a
   * directory that is gone is fine.
   *
   * @throws {KubernetesError} `ERR_CSI_TARGET`.
   * @throws {WriteError} when it cannot be done.
   */
  unpublish(volumeId: string, targetPath: string): Promise<void> {
    this.#wanted.get(targetPath)?.abort(new ClosedError(`The volume "${volumeId}" was unpublished`));
    this.#wanted.delete(targetPath);
    return this.#inTurn(targetPath, async () => {
      const exists = await this.#isDirectory(targetPath);
      if (exists) {
        await this.#publicationOf(volumeId, targetPath).volume.clear();
        await this.#options.removeTarget(targetPath);
      }
      this.#publications.delete(targetPath);
    });
  }

  /** Tells producers to stop, and awaits them. What is published stays. Never rejects. */
  close(): Promise<void> {
    const reason = new ClosedError('The volume publisher was closed');
    for (const wanted of this.#wanted.values()) wanted.abort(reason);
    return this.#scope.end(reason);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #inTurn<T>(targetPath: string, work: () => Promise<T>): Promise<T> {
    if (this.#scope.ended) throw this.#scope.signal.reason;
    const before = this.#turns.get(targetPath) ?? Promise.resolve();
    const turn = this.#scope.track(before.then(work, work));
    this.#turns.set(targetPath, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(targetPath) === turn) this.#turns.delete(targetPath);
    }
  }

  #publicationOf(volumeId: string, targetPath: string): Publication {
    const { volume: options, clock, fs } = this.#options;
    const known = this.#publications.get(targetPath);
    if (known && known.volumeId !== volumeId) {
      throw badTarget(targetPath, `is in use by the volume "${known.volumeId}"`);
    }
    if (known) return known;
    const volume = new AtomicVolume(targetPath, { ...options, clock, fs });
    const publication = { volumeId, volume };
    this.#publications.set(targetPath, publication);
    return publication;
  }

  /** What is published, if it is still what it should be. */
  async #freshRevision(
    { volume, produced }: Publication,
    tokens: ServiceAccountTokens,
  ): Promise<string | undefined> {
    const { clock } = this.#options;
    if (!produced?.tokens.equals(tokens)) return undefined;
    if (clock.monotonic() >= produced.freshUntil || clock.now() >= produced.expiresAt) return undefined;
    // Somebody may have emptied the directory, or mounted another one over it.
    const revision = await this.#publishedRevision(volume);
    return revision === produced.revision ? revision : undefined;
  }

  /** What readers see; undefined when there is nothing to read. */
  async #publishedRevision({ directory }: AtomicVolume): Promise<string | undefined> {
    const { fs } = this.#options;
    try {
      const revision = await fs.readlink(`${directory}/${DATA_LINK}`);
      await fs.lstat(`${directory}/${revision}`);
      return revision;
    } catch {
      return undefined;
    }
  }

  async #produce(
    publication: Publication,
    produce: VolumeProducer,
    tokens: ServiceAccountTokens,
    wanted: AbortSignal,
  ): Promise<PublishedVolume> {
    const { clock, freshForMs, produceTimeoutMs } = this.#options;
    const { volume, volumeId } = publication;
    const begun = clock.monotonic();
    const { files, expiresAt = Infinity } = await withDeadline((signal) => produce({ tokens, signal }), {
      clock,
      timeoutMs: produceTimeoutMs,
      signal: wanted,
      late: () => new Error(`it took over ${produceTimeoutMs} ms`),
    });
    const { changed, revision } = await volume.write(files);
    publication.produced = {
      revision,
      tokens,
      freshUntil: begun + freshForMs,
      expiresAt: Math.min(expiresAt, tokens.expiresAt),
    };
    if (changed) this.emit('published', { volumeId, targetPath: volume.directory, revision });
    return { outcome: changed ? 'published' : 'unchanged', revision, error: undefined };
  }

  async #failed(publication: Publication, error: ResilientError): Promise<PublishedVolume> {
    const { volume, volumeId } = publication;
    delete publication.produced;
    const revision = await this.#publishedRevision(volume);
    const kept = revision !== undefined;
    this.emit('failed', { volumeId, targetPath: volume.directory, error, kept });
    if (!kept) throw error;
    return { outcome: 'kept', revision, error };
  }

  /** Whether there is a directory to publish in; false when there is nothing. */
  async #isDirectory(targetPath: unknown): Promise<boolean> {
    if (typeof targetPath !== 'string' || !isAbsolute(targetPath) || targetPath.includes('\0')) {
      throw badTarget(targetPath, 'is not an absolute path');
    }
    if (normalize(targetPath) !== targetPath) throw badTarget(targetPath, 'is not a clean path');
    try {
      // A link would let whoever made it choose where secrets are written to.
      const stat = await this.#options.fs.lstat(targetPath.replace(/(?<=.)\/$/, ''));
      if (stat.isSymbolicLink()) throw badTarget(targetPath, 'is a symbolic link');
      if (!stat.isDirectory()) throw badTarget(targetPath, 'is not a directory');
      return true;
    } catch (cause) {
      if (errnoOf(cause) === 'ENOENT') return false;
      if (cause instanceof KubernetesError) throw cause;
      throw badTarget(targetPath, 'cannot be looked at', cause);
    }
  }
}

function badTarget(targetPath: unknown, why: string, cause?: unknown): KubernetesError {
  const message = `Cannot publish in ${describe(targetPath)}: it ${why}`;
  return new KubernetesError('ERR_CSI_TARGET', message, cause === undefined ? undefined : { cause });
}

/** What the library threw as it is; what a producer threw, or gave that cannot be written, with its volume. */
function asResilient(volumeId: string, thrown: unknown): ResilientError {
  const cause = withoutTokens(thrown);
  if (cause instanceof ResilientError) return cause;
  const reason = cause instanceof Error ? cause.message : describe(cause);
  return new KubernetesError('ERR_CSI_PRODUCE', `Cannot produce the volume "${volumeId}": ${reason}`, {
    cause,
  });
}
