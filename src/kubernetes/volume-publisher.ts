import { isAbsolute, normalize } from 'node:path';

import { AtomicVolume, type AtomicVolumeOptions } from '../write/atomic-volume.js';
import type { VolumeEntry } from '../write/volume-files.js';

import { Component, type ComponentEvents, type ComponentStatus } from '../core/component.js';
import { withDeadline } from '../core/deadline.js';
import { errnoOf } from '../core/errno.js';
import { ClosedError, KubernetesError, ResilientError } from '../core/errors.js';
import type { LifecycleState } from '../core/lifecycle.js';
import { markHandled } from '../core/outcome.js';
import {
  componentName,
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
import { redactError } from '../core/resilient-error.js';
import { DATA_LINK } from '../fs/volume-layout.js';
import { ServiceAccountTokens } from './csi-tokens.js';
import { SerialQueue } from '../core/serial-queue.js';

/** The contents of a volume. */
export interface ProducedVolume {
  /** By key, as `AtomicVolume.write` takes them: an object or a `Map`. */
  readonly files: Readonly<Record<string, VolumeEntry>> | ReadonlyMap<string, VolumeEntry>;
  /** When it has to be produced again, epoch ms; default: when the tokens or `freshForMs` require it. */
  readonly expiresAt?: number | undefined;
}

/** Produces the contents of a volume, for example from a vault. It should stop when `signal` aborts. */
export type VolumeProducer = (context: {
  readonly tokens: ServiceAccountTokens;
  readonly signal: AbortSignal;
}) => ProducedVolume | Promise<ProducedVolume>;

/** The result of `publish()`. */
export interface PublishedVolume {
  /**
   * `published`: new contents. `unchanged`: produced again, the same as before. `skipped`: there was nothing to do.
   * `kept`: it failed (see `error`), and the last good contents are still there.
   */
  readonly outcome: 'published' | 'unchanged' | 'skipped' | 'kept';
  /** What `..data` points to. */
  readonly revision: string;
  readonly error: ResilientError | undefined;
}

/** Events of `VolumePublisher`. No event contains a token. */
export interface VolumePublisherEvents extends ComponentEvents {
  published: [event: { readonly volumeId: string; readonly targetPath: string; readonly revision: string }];
  /** Producing or writing failed; `kept` says whether older contents remain. */
  failed: [
    event: {
      readonly volumeId: string;
      readonly targetPath: string;
      readonly error: ResilientError;
      readonly kept: boolean;
    },
  ];
}

/** One volume in the status of a `VolumePublisher`. */
export interface PublishedVolumeStatus {
  readonly volumeId: string;
  readonly targetPath: string;
  /** What this process last published or found unchanged; null after a failure. */
  readonly revision: string | null;
}

/** The status of a `VolumePublisher`. Plain data without secrets. */
export interface VolumePublisherStatus extends ComponentStatus {
  readonly state: LifecycleState;
  readonly volumes: readonly PublishedVolumeStatus[];
}

/** Options of `VolumePublisher`. */
export interface VolumePublisherOptions {
  /** The name in its status and telemetry; default `VolumePublisher`. */
  readonly name?: string | undefined;
  /** Mode, owner, durability and grace of the volumes' files. On tmpfs `durability: 'none'` is enough. */
  readonly volume?: Pick<AtomicVolumeOptions, 'mode' | 'owner' | 'durability' | 'graceMs'> | undefined;
  /**
   * How long contents count as fresh, ms, while the tokens stay the same and `expiresAt` is not reached. Default 120 000,
   * as in the Secrets Store driver. Measured by the monotonic clock.
   */
  readonly freshForMs?: number | undefined;
  /** A producer fails after this long, ms; default 90 000, since kubelet waits 120 s for the driver. */
  readonly produceTimeoutMs?: number | undefined;
  /**
   * Creates the directory and mounts what has to be mounted on it. Called by each `publish()` after the path
   * was checked, so it must leave existing mounts alone. Default: the directory has to exist.
   */
  readonly prepareTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  /** Undoes that after the contents were removed; not called for a directory that is gone. Default: nothing. */
  readonly removeTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  /** Closes it when it aborts. */
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  readonly fs?: FileSystem | undefined;
}

const OPTIONS = {
  name: componentName('VolumePublisher'),
  volume: matching<AtomicVolumeOptions>(
    {},
    'an object',
    (value) => typeof value === 'object' && value !== null,
  ),
  freshForMs: milliseconds(120_000),
  produceTimeoutMs: milliseconds(90_000, { min: 1 }),
  prepareTarget: callback<(targetPath: string) => void | Promise<void>>(() => {}),
  removeTarget: callback<(targetPath: string) => void | Promise<void>>(() => {}),
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
  fs: fileSystem('open', 'readlink', 'symlink', 'rename', 'lstat'),
};

/** A target path that this publisher writes to. */
interface Publication {
  readonly volumeId: string;
  readonly volume: AtomicVolume;
  /** The last good contents, if this process produced them. */
  produced?: {
    readonly revision: string;
    readonly tokens: ServiceAccountTokens;
    /** Monotonic ms, and epoch ms; whichever is reached first. */
    readonly freshUntil: number;
    readonly expiresAt: number;
  };
}

/**
 * What a CSI driver with `requiresRepublish` does in NodePublishVolume, which kubelet calls about once a minute for
 * as long as the pod lives, and in NodeUnpublishVolume. Calls for the same target path run one after another.
 *
 * | when                                               | what `publish` does                             |
 * |----------------------------------------------------|-------------------------------------------------|
 * | same tokens, still fresh, and still there          | nothing: `skipped`                              |
 * | anything else                                      | produces; `published`, or `unchanged`           |
 * | producing or writing fails, there are old contents | `kept`: resolves, and emits `failed`            |
 * | the same, and there are none                       | rejects, so that kubelet does not start the pod |
 *
 * A failed republish is deliberately no error for kubelet, which would take the volume for unmounted and remove the
 * directory from under the running pod (kubernetes/kubernetes#121271). The directory itself, and what is mounted on it,
 * is never replaced. The first call of `publish` or `unpublish` starts it; `start()` may be called before.
 */
export class VolumePublisher extends Component<VolumePublisherEvents, VolumePublisherStatus> {
  readonly #options: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #publications = new Map<string, Publication>();
  /**
   * For the calls of `publish()` since the last `unpublish()`, by target path: aborts when they are not
   * wanted any more.
   */
  readonly #wanted = new Map<string, AbortController>();
  readonly #queue = new SerialQueue();

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(options?: VolumePublisherOptions) {
    const resolved = resolveOptions('VolumePublisher', options, OPTIONS);
    const { name, signal, clock } = resolved;
    super({ kind: 'VolumePublisher', name, purpose: 'publish volumes', signal, clock });
    this.#options = resolved;
  }

  status(): VolumePublisherStatus {
    const volumes = [...this.#publications].map(([targetPath, { volumeId, produced }]) => ({
      volumeId,
      targetPath,
      revision: produced?.revision ?? null,
    }));
    return { name: this.name, state: this.lifecycleState, lastError: this.lastError, volumes };
  }

  /**
   * Brings the volume up to date. Idempotent; to be called for each NodePublishVolume.
   *
   * @param target absolute path of the directory; `/m` and `/m/` are the same one.
   * @param options.tokens what `parseServiceAccountTokens` returns; when they differ from before, it is produced again. If
   * this is a function and throws, it is a failure like those of the producer, and the old contents are kept.
   * @throws {KubernetesError} `ERR_CSI_TARGET` for a path that is not a directory to publish in, else `ERR_CSI_PRODUCE`.
   * @throws {WriteError} when it cannot be written and there are no older contents.
   * @throws {ClosedError} after `close()`, or when it was unpublished meanwhile.
   */
  publish(
    volumeId: string,
    target: string,
    produce: VolumeProducer,
    options: { readonly tokens?: ServiceAccountTokens | (() => ServiceAccountTokens) | undefined } = {},
  ): Promise<PublishedVolume> {
    const targetPath = withoutTrailingSlashes(target);
    const wanted = this.#wanted.get(targetPath) ?? new AbortController();
    this.#wanted.set(targetPath, wanted);
    const publish = async (): Promise<PublishedVolume> => {
      wanted.signal.throwIfAborted();
      await this.#isDirectory(targetPath);
      await this.#options.prepareTarget(targetPath);
      if (!(await this.#isDirectory(targetPath))) throw badTarget(targetPath, 'does not exist');
      const publication = this.#publicationOf(volumeId, targetPath);
      let tokens = new ServiceAccountTokens();
      try {
        const { tokens: given = tokens } = options;
        tokens = typeof given === 'function' ? given() : given;
        const revision = await this.#freshRevision(publication, tokens);
        if (revision !== undefined) return { outcome: 'skipped', revision, error: undefined };
        return await this.#produce(publication, produce, tokens, wanted.signal);
      } catch (thrown) {
        wanted.signal.throwIfAborted();
        return await this.#failed(publication, asResilient(volumeId, thrown, secretsOf(tokens)));
      }
    };
    return this.#inTurn(targetPath, () =>
      this.trace('publish', { volumeId }, publish, ({ outcome }) => outcome),
    );
  }

  /**
   * Aborts a running producer and removes the contents, then the directory (`removeTarget`). Idempotent; a directory that
   * is gone is fine.
   *
   * @throws {KubernetesError} `ERR_CSI_TARGET`.
   * @throws {WriteError} when it cannot be done.
   */
  unpublish(volumeId: string, target: string): Promise<void> {
    const targetPath = withoutTrailingSlashes(target);
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

  /** Aborts producers and awaits them. What is published stays. Never rejects. */
  override close(): Promise<void> {
    return super.close();
  }

  protected override onClose(): void {
    for (const wanted of this.#wanted.values()) wanted.abort(this.scope.signal.reason);
  }

  async #inTurn<T>(targetPath: string, work: () => Promise<T>): Promise<T> {
    this.throwIfClosed();
    void markHandled(this.start());
    return this.scope.track(this.#queue.run(targetPath, work));
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
    // The directory may have been emptied, or another one mounted over it.
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
    const produced = await withDeadline((signal) => produce({ tokens, signal }), {
      clock,
      timeoutMs: produceTimeoutMs,
      signal: wanted,
      late: () => new Error(`it took over ${produceTimeoutMs} ms`),
    });
    const { expiresAt = Infinity } = produced;
    const { changed, revision } = await volume.write(produced.files);
    publication.produced = {
      revision,
      tokens,
      freshUntil: begun + freshForMs,
      expiresAt: Math.min(expiresAt, tokens.expiresAt),
    };
    if (changed) this.dispatch('published', { volumeId, targetPath: volume.directory, revision });
    return { outcome: changed ? 'published' : 'unchanged', revision, error: undefined };
  }

  async #failed(publication: Publication, error: ResilientError): Promise<PublishedVolume> {
    const { volume, volumeId } = publication;
    delete publication.produced;
    const revision = await this.#publishedRevision(volume);
    const kept = revision !== undefined;
    this.recordError(error);
    this.dispatch('failed', { volumeId, targetPath: volume.directory, error, kept });
    if (!kept) throw error;
    return { outcome: 'kept', revision, error };
  }

  /** Whether there is a directory to publish in; false if nothing is there. */
  async #isDirectory(targetPath: unknown): Promise<boolean> {
    if (typeof targetPath !== 'string' || !isAbsolute(targetPath) || targetPath.includes('\0')) {
      throw badTarget(targetPath, 'is not an absolute path');
    }
    if (normalize(targetPath) !== targetPath) throw badTarget(targetPath, 'is not a clean path');
    try {
      // Whoever made a link would choose where secrets are written.
      const stat = await this.#options.fs.lstat(targetPath);
      if (stat.isSymbolicLink()) throw badTarget(targetPath, 'is a symbolic link');
      if (!stat.isDirectory()) throw badTarget(targetPath, 'is not a directory');
      return true;
    } catch (cause) {
      if (errnoOf(cause) === 'ENOENT') return false;
      if (cause instanceof KubernetesError) throw cause;
      throw badTarget(targetPath, 'cannot be examined', cause);
    }
  }
}

function badTarget(targetPath: unknown, why: string, cause?: unknown): KubernetesError {
  const message = `Cannot publish in ${describe(targetPath)}: it ${why}`;
  return new KubernetesError('ERR_CSI_TARGET', message, cause === undefined ? undefined : { cause });
}

/**
 * What the library threw, without secrets; what a producer threw, or returned and cannot be written, with its
 * volume.
 */
function asResilient(volumeId: string, thrown: unknown, secrets: readonly string[]): ResilientError {
  const cause = redactError(thrown, secrets);
  if (cause instanceof ResilientError) return cause;
  const message = `Cannot produce the volume "${volumeId}": ${cause.message}`;
  return new KubernetesError('ERR_CSI_PRODUCE', message, { cause });
}

function secretsOf(tokens: ServiceAccountTokens): string[] {
  return tokens.audiences.map((audience) => tokens.get(audience).value);
}

/** A directory has one path, with or without slashes at its end; with one, a link would be followed. */
function withoutTrailingSlashes(path: string): string {
  if (typeof path !== 'string') return path;
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}
