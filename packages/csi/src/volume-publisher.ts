import nodeFileSystem from 'node:fs';

import {
  ClosedError,
  ResilientError,
  type AtomicVolumeOptions,
  type Clock,
  type ComponentHandle,
  type ComponentStatus,
  type FileSystem,
  type OperationMessage,
  type Scheduled,
} from 'resilient-watcher';
import {
  Component,
  markHandled,
  matching,
  milliseconds,
  nonEmptyString,
  onAbort,
  port,
  PORT_OPTIONS,
  redactError,
  resolveOptions,
  SerialQueue,
  withDeadline,
  withoutTrailingSlashes,
  type ComponentEvents,
  type LifecycleState,
  type TelemetryTable,
} from 'resilient-watcher/internal';
import { KubernetesError } from 'resilient-watcher/kubernetes';

import { Publication, type VolumeProducer } from './publication.js';
import { badTarget, hookFailed, targetExists, type TargetHook } from './target.js';
import { ServiceAccountTokens } from './tokens.js';

/** The result of `publish()`. */
export interface PublishedVolume {
  /**
   * `published`: new contents. `unchanged`: produced again, with the same result. `skipped`: nothing had to be done.
   * `kept`: publishing failed (see `error`), and the last good contents remain.
   */
  readonly outcome: 'published' | 'unchanged' | 'skipped' | 'kept';
  /** The target of `..data`. */
  readonly revision: string;
  /** Why publishing failed; undefined unless `kept`. */
  readonly error: ResilientError | undefined;
}

/** Events of `VolumePublisher`. No event contains a token. */
export interface VolumePublisherEvents extends ComponentEvents {
  /** New contents are published. */
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

/** A call of `publish()`. `result`: its `outcome`. */
export interface PublishMessage extends OperationMessage {
  readonly component: ComponentHandle;
  readonly volumeId: string;
}

/** An operation in telemetry that only a `VolumePublisher` has. */
export interface PublishOperation {
  readonly name: 'publish';
  readonly message: PublishMessage;
}

const RESULTS = ['published', 'unchanged', 'skipped', 'kept', 'error'];

const TELEMETRY: TelemetryTable<Record<string, never>, { publish: PublishMessage }> = {
  operations: {
    publish: {
      line({ result, error }) {
        if (error) return { level: 'warn', text: `publication failed: ${error.message || error.name}` };
        if (result === 'kept')
          return { level: 'warn', text: 'publication failed, the last good contents stay' };
        return result === 'published' ? { level: 'routine', text: 'publication published' } : undefined;
      },
      measure: ({ result }, meter) => meter.count('publishes', { result }),
    },
  },
  metrics: {
    publishes: {
      kind: 'counter',
      unit: '{publish}',
      labels: ['result'],
      initial: RESULTS.map((result) => ({ result })),
      help: `Publications of CSI volumes (${RESULTS.join(', ')}).`,
    },
  },
};

/** One volume in the status of a `VolumePublisher`. */
export interface PublishedVolumeStatus {
  /** The id that was passed to `publish()`. */
  readonly volumeId: string;
  /** The directory of the volume, absolute. */
  readonly targetPath: string;
  /** The revision that this process last published or found unchanged; null after a failure. */
  readonly revision: string | null;
}

/** The status of a `VolumePublisher`. Plain data without secrets. */
export interface VolumePublisherStatus extends ComponentStatus {
  readonly state: LifecycleState;
  /** The volumes that are published, and have not been unpublished since. */
  readonly volumes: readonly PublishedVolumeStatus[];
}

/** Options of `VolumePublisher`. */
export interface VolumePublisherOptions {
  /** The name in its status and telemetry; default `VolumePublisher`. */
  readonly name?: string | undefined;
  /** Options of the volumes. On tmpfs `durability: 'none'` is enough. */
  readonly volume?: Pick<AtomicVolumeOptions, 'mode' | 'owner' | 'durability' | 'graceMs'> | undefined;
  /**
   * How long contents count as fresh, ms, while the tokens stay the same and `expiresAt` is not reached.
   * Default 120,000, as in the Secrets Store driver. Measured by the monotonic clock.
   */
  readonly freshForMs?: number | undefined;
  /**
   * The timeout of a producer, `prepareTarget` or `removeTarget`, ms. Default 90,000, because kubelet waits 120 s for
   * the driver.
   */
  readonly produceTimeoutMs?: number | undefined;
  /**
   * Creates the directory and any mount on it. Each `publish()` calls it after checking the path, so it must not mount
   * again if the mount exists. If it fails, existing contents are kept. No other hook is called for the target until it
   * has returned. Default: the directory must exist.
   */
  readonly prepareTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  /** Undoes `prepareTarget` after the contents have been removed, unless the directory is gone. Default: nothing. */
  readonly removeTarget?: ((targetPath: string) => void | Promise<void>) | undefined;
  /** Closes the publisher when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: FileSystem | undefined;
}

/** One call of `publish()`; `wanted` aborts when the volume is unpublished, or the publisher closed. */
interface PublishCall {
  readonly volumeId: string;
  readonly targetPath: string;
  readonly wanted: AbortController;
}

/** How long `close()` waits for a running hook, ms. A pod has 30 s to end. */
const HOOK_AT_CLOSE_MS = 10_000;

const hook = matching<(targetPath: string) => void | Promise<void>>(
  () => {},
  'a function',
  (value) => typeof value === 'function',
);

const OPTIONS = {
  name: nonEmptyString('VolumePublisher'),
  volume: matching<AtomicVolumeOptions>(
    {},
    'an object',
    (value) => typeof value === 'object' && value !== null,
  ),
  freshForMs: milliseconds(120_000),
  produceTimeoutMs: milliseconds(90_000, { min: 1 }),
  prepareTarget: hook,
  removeTarget: hook,
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
  fs: port<FileSystem>(nodeFileSystem, 'open', 'openSync', 'readlink', 'symlink', 'rename', 'lstat'),
};

/**
 * Implements NodePublishVolume and NodeUnpublishVolume for a CSI driver with `requiresRepublish`, where kubelet calls
 * NodePublishVolume about once a minute for as long as the pod lives. Calls for the same target path run one after
 * another.
 *
 * | when                                      | `publish()`                                     |
 * |-------------------------------------------|-------------------------------------------------|
 * | same tokens, still fresh, and still there | nothing: `skipped`                              |
 * | anything else                             | produces; `published`, or `unchanged`           |
 * | a failure, with older contents in place   | `kept`: resolves, and emits `failed`            |
 * | a failure without older contents          | rejects, so that kubelet does not start the pod |
 *
 * A failed republish is deliberately not reported to kubelet, which would consider the volume unmounted and remove the
 * directory of the running pod (kubernetes/kubernetes#121271). The directory itself, and a mount on it, are never
 * replaced. The first `publish()` or `unpublish()` starts the publisher; `start()` may be called before.
 */
export class VolumePublisher extends Component<VolumePublisherEvents, VolumePublisherStatus> {
  readonly #options: ReturnType<typeof resolveOptions<typeof OPTIONS>>;
  readonly #publications = new Map<string, Publication>();
  /** The calls of `publish()` that have not ended. */
  readonly #calls = new Set<PublishCall>();
  readonly #queue = new SerialQueue();
  /** The calls of hooks. A hook that does not return delays only the next hook of its target, which has a deadline. */
  readonly #hooks = new SerialQueue();
  /** The running hooks, by target path. */
  readonly #running = new Map<string, TargetHook>();

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(options?: VolumePublisherOptions) {
    const resolved = resolveOptions('VolumePublisher', options, OPTIONS);
    const { name, signal, clock } = resolved;
    super({
      kind: 'VolumePublisher',
      name,
      signal,
      clock,
      description: { worksIdle: true, telemetry: TELEMETRY },
    });
    this.#options = resolved;
  }

  status(): VolumePublisherStatus {
    const volumes = [...this.#publications].map(([targetPath, { volumeId, revision }]) => ({
      volumeId,
      targetPath,
      revision,
    }));
    return { name: this.name, state: this.lifecycleState, lastError: this.lastError, volumes };
  }

  /**
   * Brings the volume up to date. Idempotent. Call it for each NodePublishVolume.
   *
   * @param target absolute path of the directory; `/m` and `/m/` are the same directory.
   * @param options.tokens the result of `parseServiceAccountTokens`, or a function that returns it. When the tokens
   * differ, the contents are produced again. If the function throws, that counts as a failure of the producer.
   * @throws {KubernetesError} `ERR_CSI_TARGET` for a path that is not a directory to publish in, and when
   * `prepareTarget` fails or does not return; otherwise `ERR_CSI_PRODUCE`.
   * @throws {WriteError} when the volume cannot be written and there are no older contents.
   * @throws {ClosedError} after `close()`, or when the volume was unpublished meanwhile.
   */
  publish(
    volumeId: string,
    target: string,
    produce: VolumeProducer,
    options: { readonly tokens?: ServiceAccountTokens | (() => ServiceAccountTokens) | undefined } = {},
  ): Promise<PublishedVolume> {
    const targetPath = withoutTrailingSlashes(target);
    const call: PublishCall = { volumeId, targetPath, wanted: new AbortController() };
    const { signal } = call.wanted;
    const { fs } = this.#options;
    const publish = async (): Promise<PublishedVolume> => {
      signal.throwIfAborted();
      await targetExists(targetPath, fs);
      try {
        await this.#call('prepareTarget', targetPath);
      } catch (thrown) {
        if (!(thrown instanceof KubernetesError)) throw thrown;
        signal.throwIfAborted();
        return await this.#failed(this.#publicationOf(volumeId, targetPath), thrown);
      }
      if (!(await targetExists(targetPath, fs))) throw badTarget(targetPath, 'does not exist');
      const publication = this.#publicationOf(volumeId, targetPath);
      let tokens = new ServiceAccountTokens();
      try {
        const { tokens: given = tokens } = options;
        tokens = typeof given === 'function' ? given() : given;
        const fresh = await publication.freshRevision(tokens);
        if (fresh !== undefined) return { outcome: 'skipped', revision: fresh, error: undefined };
        const { changed, revision } = await publication.produce(produce, tokens, signal);
        if (changed) this.dispatch('published', { volumeId, targetPath, revision });
        return { outcome: changed ? 'published' : 'unchanged', revision, error: undefined };
      } catch (thrown) {
        signal.throwIfAborted();
        return await this.#failed(publication, asResilient(volumeId, thrown, secretsOf(tokens)));
      }
    };
    this.#calls.add(call);
    const turn = this.#inTurn(targetPath, () =>
      this.trace('publish', { volumeId }, publish, ({ outcome }) => outcome),
    );
    return turn.finally(() => this.#calls.delete(call));
  }

  /**
   * Aborts a running producer, removes the contents, and calls `removeTarget`. Idempotent; the directory may be
   * missing.
   *
   * @throws {KubernetesError} `ERR_CSI_TARGET`, also when `removeTarget` fails or does not return.
   * @throws {WriteError} when the contents cannot be removed.
   */
  unpublish(volumeId: string, target: string): Promise<void> {
    const targetPath = withoutTrailingSlashes(target);
    const unwanted = new ClosedError(`The volume "${volumeId}" was unpublished`);
    for (const call of this.#calls) {
      if (call.volumeId === volumeId && call.targetPath === targetPath) call.wanted.abort(unwanted);
    }
    return this.#inTurn(targetPath, async () => {
      const isThere = await targetExists(targetPath, this.#options.fs);
      const publication = this.#publicationOf(volumeId, targetPath);
      if (isThere) {
        await publication.clear();
        await this.#call('removeTarget', targetPath);
      }
      this.#publications.delete(targetPath);
    });
  }

  /**
   * Aborts producers and awaits them. Published contents stay. A hook that does not return is awaited for 10 s; the
   * call that waits for it then rejects with a `ClosedError` that names it. Never rejects.
   */
  override close(): Promise<void> {
    return super.close();
  }

  protected override get purpose(): string {
    return 'publish volumes';
  }

  protected override onClose(): void {
    for (const { wanted } of this.#calls) wanted.abort(this.lifetime.signal.reason);
  }

  /**
   * Calls a hook once the previous hook of this target has returned, because two at once might mount twice.
   * @throws {KubernetesError} (rejects) when the hook fails, or has not returned in time; it may still return later.
   * @throws {ClosedError} (rejects) when the hook has not returned within 10 s of `close()`.
   */
  async #call(hook: TargetHook, targetPath: string): Promise<void> {
    const { clock, produceTimeoutMs: timeoutMs, [hook]: call } = this.#options;
    const inTurn = (signal: AbortSignal): Promise<void> =>
      this.#hooks.run(targetPath, async () => {
        signal.throwIfAborted();
        this.#running.set(targetPath, hook);
        try {
          await call(targetPath);
        } finally {
          this.#running.delete(targetPath);
        }
      });
    const waitingFor = (ms: number): string =>
      `${this.#running.get(targetPath) ?? hook} of "${targetPath}" has not returned for ${ms} ms`;
    const late = (): Error => new Error(waitingFor(timeoutMs));
    const givenUp = new AbortController();
    const giveUp = (): void =>
      givenUp.abort(new ClosedError(`The publisher was closed, and ${waitingFor(HOOK_AT_CLOSE_MS)}`));
    let timer: Scheduled | undefined;
    const forget = onAbort(this.lifetime.signal, () => (timer = clock.schedule(giveUp, HOOK_AT_CLOSE_MS)));
    try {
      await withDeadline(inTurn, { clock, timeoutMs, signal: givenUp.signal, late });
    } catch (thrown) {
      throw givenUp.signal.aborted ? thrown : hookFailed(hook, targetPath, thrown);
    } finally {
      forget();
      timer?.cancel();
    }
  }

  async #inTurn<T>(targetPath: string, work: () => Promise<T>): Promise<T> {
    this.throwIfClosed();
    void markHandled(this.start());
    return this.lifetime.track(this.#queue.run(targetPath, work));
  }

  #publicationOf(volumeId: string, targetPath: string): Publication {
    const known = this.#publications.get(targetPath);
    if (known && known.volumeId !== volumeId) {
      throw badTarget(targetPath, `is in use by the volume "${known.volumeId}"`);
    }
    if (known) return known;
    const publication = new Publication(volumeId, targetPath, this.#options);
    this.#publications.set(targetPath, publication);
    return publication;
  }

  async #failed(publication: Publication, error: ResilientError): Promise<PublishedVolume> {
    const { volumeId, targetPath } = publication;
    publication.expire();
    const revision = await publication.publishedRevision();
    const kept = revision !== undefined;
    this.recordError(error);
    this.dispatch('failed', { volumeId, targetPath, error, kept });
    if (!kept) throw error;
    return { outcome: 'kept', revision, error };
  }
}

/**
 * An error of the library without secrets. Other errors, such as those of a producer, become `ERR_CSI_PRODUCE` with the
 * name of the volume.
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
