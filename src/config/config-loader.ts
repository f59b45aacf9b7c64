/**
 * The machine that never serves a broken configuration and never misses a good one.
 *
 * | state     | `load()`                     | a source changed              | `close()`  |
 * |-----------|------------------------------|-------------------------------|------------|
 * | `idle`    | → `loading`                  | –                             | → `closed` |
 * | `loading` | same promise                 | noted                         | → `closed` |
 * | `running` | same promise                 | a step, after `settleMs`      | → `closed` |
 * | `closed`  | rejects                      | –                             | –          |
 *
 * `loading` watches every source, reads all, validates, and leads to `running`; when anything is wrong it rejects
 * and leads back to `idle`. A step, one at a time:
 *
 * | what a changed source gives  | then                                                                      |
 * |------------------------------|---------------------------------------------------------------------------|
 * | cannot be read or parsed     | `rejected`, once for each such state; its last good state stays            |
 * | good, as it was              | nothing                                                                   |
 * | good, another                | it waits to be accepted: the table of config-loader/layers.ts              |
 *
 * | what was accepted            | then                                                                      |
 * |------------------------------|---------------------------------------------------------------------------|
 * | something                    | the new configuration is current; `change` if it differs                  |
 * | not all that just changed    | `rejected`; it is tried again with every later change                     |
 *
 * What throws or takes too long counts as wrong, and what it gives later is ignored.
 */
import { BackendError, ClosedError, ConfigError, TargetError, type ConfigProblem } from '../core/errors.js';
import { Emitter } from '../core/emitter.js';
import { Lifecycle } from '../core/lifecycle.js';
import type { Scheduled } from '../core/clock.js';
import { Layers } from './layers.js';
import {
  resolveLoaderOptions,
  type ConfigLoaderOptions,
  type ResolvedLoaderOptions,
} from './loader-options.js';
import type { ConfigLoaderStatus } from './loader-status.js';
import { SourceSet } from './source-set.js';
import { validateLayers, type ConfigValidator } from './validation.js';
import type { ConfigMap } from './config-value.js';
import { differingPaths, isSame } from './difference.js';
import { problemText } from './parser.js';

/** Two configurations that differ. */
export interface ConfigChange<T> {
  readonly previous: T;
  readonly current: T;
  /** Where they differ, each path from the top. */
  readonly paths: readonly (readonly string[])[];
}

/** An update that is not used. Holds no value. */
export interface ConfigRejection {
  /** Whose newest state is refused, with the digest of its bytes (`sha256:…`) where there are bytes. */
  readonly sources: readonly { readonly name: string; readonly digest: string | undefined }[];
  readonly problems: readonly ConfigProblem[];
}

/** The events of a `ConfigLoader`. */
export interface ConfigLoaderEvents<T> {
  /** The configuration is another one; `current` is set. */
  change: [change: ConfigChange<T>];
  /** An update is bad; the last good configuration stays. Once for each bad state of a source. */
  rejected: [rejection: ConfigRejection];
  /**
   * A listener failed (`ListenerError`), or a source says what will not heal by itself. Loading goes on. Unheard, it
   * becomes a process warning.
   */
  error: [error: Error];
}

/**
 * A configuration from several sources, validated, always whole, that follows its sources.
 *
 * ```ts
 * const loader = new ConfigLoader({
 *   sources: [
 *     { values: { log: { level: 'info' } } },
 *     { provider: new FileProvider('/etc/app/app.yaml'), parser: yamlParser },
 *     { env: { prefix: 'APP_' } },
 *   ],
 *   validate: z.object({ log: z.object({ level: z.string() }) }),
 * });
 * const config = await loader.load();
 * loader.select((c) => c.log.level, (level) => logger.setLevel(level));
 * loader.on('rejected', ({ problems }) => logger.warn(problems));
 * ```
 */
export class ConfigLoader<T = ConfigMap> extends Emitter<ConfigLoaderEvents<T>> {
  readonly #options: ResolvedLoaderOptions;
  readonly #sources: SourceSet;
  readonly #lifecycle: Lifecycle<T>;
  #layers: Layers<T> | undefined;
  #current: { readonly config: T; readonly at: number } | undefined;
  #changed = new Set<number>();
  #settling: Scheduled | undefined;
  #stepping: Promise<void> | undefined;
  #changes = 0;
  #rejections = 0;
  #lastRejectedAt: number | null = null;

  /**
   * Reads nothing yet.
   * @throws {TypeError | RangeError} for a wrong option or source.
   */
  constructor(options: ConfigLoaderOptions<T>) {
    super();
    this.#options = resolveLoaderOptions(options);
    const { signal } = this.#options;
    this.#lifecycle = new Lifecycle({
      signal,
      open: () => this.#open(),
      run: () => {
        if (this.#changed.size > 0) this.#plan();
        return this.current;
      },
      end: () => this.#end(),
      over: () =>
        signal?.aborted
          ? (signal.reason as Error)
          : new ClosedError('Cannot load the configuration: the loader was closed; make a new one'),
    });
    this.#sources = new SourceSet({ ...this.#options, signal: this.#lifecycle.scope.signal });
  }

  /**
   * The configuration, deeply frozen: maps and arrays are, objects of classes are not.
   * @throws {ConfigError} `ERR_CONFIG_INVALID` before it is loaded.
   */
  get current(): T {
    if (!this.#current)
      throw new ConfigError('ERR_CONFIG_INVALID', 'there is no configuration: await load() first');
    return this.#current.config;
  }

  /** See `ConfigLoaderStatus.state`. */
  get state(): ConfigLoaderStatus['state'] {
    const { state } = this.#lifecycle;
    return state === 'starting' ? 'loading' : state;
  }

  /** How it is. */
  status(): ConfigLoaderStatus {
    return {
      state: this.state,
      loadedAt: this.#current?.at ?? null,
      changes: this.#changes,
      rejections: this.#rejections,
      lastRejectedAt: this.#lastRejectedAt,
      sources: this.#sources.states.map(({ digest = null, problems }, index) => {
        const isBad = problems.length > 0 || this.#layers?.isWaiting(index);
        const state = isBad ? 'rejected' : this.#layers ? 'current' : 'unread';
        return { name: this.#sources.names[index] ?? '', state, digest, problems };
      }),
    };
  }

  /**
   * Watches all sources, reads and validates, and resolves to the configuration, which from then on follows its
   * sources. A second call returns the same promise; after a failure one may call again.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_INVALID` with every problem of every source.
   * @throws {ClosedError} (rejects) after or during `close()`; the signal's reason when that has aborted.
   */
  load(): Promise<T> {
    return this.#lifecycle.start();
  }

  /**
   * Reads all sources again, and tries again what was refused. Resolves when that has ended; for sources that cannot
   * be watched, and for a `validate` that may answer otherwise now.
   * @throws {ClosedError} (rejects) when the loader is not running.
   */
  async check(): Promise<void> {
    while (this.#stepping) await this.#stepping;
    if (this.state !== 'running')
      throw new ClosedError(`Cannot check the configuration: it is ${this.state}`);
    for (const index of this.#sources.names.keys()) this.#changed.add(index);
    await this.#run(true);
  }

  /** Resolves when no step is under way. One that waits for `settleMs` waits for its time, not for this. */
  async idle(): Promise<void> {
    while (this.#stepping) await this.#stepping;
  }

  /**
   * Calls `listener` after each change in which what `selector` picks differs, deeply; not for what is there now.
   * What either throws is told as `error`. Returns a function that ends it.
   */
  select<S>(selector: (config: T) => S, listener: (selected: S, previous: S) => unknown): () => void {
    const onChange = ({ previous, current }: ConfigChange<T>): unknown => {
      const before = selector(previous);
      const after = selector(current);
      return isSame(before, after) ? undefined : listener(after, before);
    };
    const emitter = this as unknown as ConfigLoader;
    emitter.on('change', onChange as (change: ConfigChange<ConfigMap>) => unknown);
    return () => void emitter.off('change', onChange as (change: ConfigChange<ConfigMap>) => unknown);
  }

  /**
   * Ends it: the sources are watched no more, no event comes; `current` stays what it is. May be called twice,
   * before `load()`, and within a listener. Never rejects.
   */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(): Promise<void> {
    try {
      await this.#lifecycle.scope.track(this.#loadAll());
    } catch (error) {
      if (this.state !== 'closed') await this.#sources.close();
      throw error;
    }
  }

  async #loadAll(): Promise<void> {
    this.#changed.clear();
    const read = await this.#sources.open((index, error) => this.#hint(index, error));
    const layers = read.map((values) => values ?? {});
    const unread = this.#sources.states.flatMap(({ problems }) => problems);
    const verdict = unread.length > 0 ? { problems: unread } : await this.#validate(layers);
    if ('problems' in verdict) throw invalid(verdict.problems);
    this.#layers = new Layers(layers, (candidate) => this.#validate(candidate));
    this.#current = { config: verdict.config, at: this.#options.clock.now() };
  }

  #end(): Promise<void> {
    this.#settling?.cancel();
    return this.#sources.close();
  }

  /** A provider calls back. */
  #hint(index: number, error: Error | undefined): void {
    if (this.state === 'closed') return;
    // That it cannot be read is for a step to find out; that it is polled heals by itself.
    if (error && !(error instanceof TargetError) && !(error instanceof BackendError))
      this.#tell('error', error);
    this.#changed.add(index);
    this.#plan();
  }

  #plan(): void {
    if (this.state !== 'running' || this.#settling || this.#stepping) return;
    this.#settling = this.#options.clock.schedule(() => void this.#run(false), this.#options.settleMs);
  }

  /** Takes a step. @param retry also what has not changed is tried again */
  #run(retry: boolean): Promise<void> {
    this.#settling?.cancel();
    this.#settling = undefined;
    const step = this.#step(retry).catch((error: unknown) => {
      // Ended by close(), or a fault of a listener's error handling that must not stop the loop.
      if (!this.#lifecycle.scope.ended)
        this.#tell('error', error instanceof Error ? error : new Error(String(error)));
    });
    this.#stepping = this.#lifecycle.scope.track(step).finally(() => {
      this.#stepping = undefined;
      if (this.#changed.size > 0) this.#plan();
    });
    return this.#stepping;
  }

  async #step(retry: boolean): Promise<void> {
    const indexes = [...this.#changed];
    this.#changed = new Set();
    const known = [...this.#sources.states];
    const readings = await Promise.all(indexes.map((index) => this.#sources.read(index)));
    const layers = this.#layers;
    if (!layers || this.#lifecycle.scope.ended) return;

    const fresh = new Set<number>();
    const refused = new Set<number>();
    const problems: ConfigProblem[] = [];
    for (const [nth, index] of indexes.entries()) {
      const values = readings[nth];
      const state = this.#sources.states[index];
      if (values) {
        if (layers.take(index, values)) fresh.add(index);
      } else if (!isSame(state, known[index])) {
        refused.add(index);
        problems.push(...(state?.problems ?? []));
      }
    }
    if (fresh.size > 0 || retry) {
      const settlement = await layers.settle(fresh);
      if (settlement.accepted) this.#accept(settlement.accepted.config);
      const waiting = [...fresh].filter((index) => layers.isWaiting(index));
      if (waiting.length > 0) problems.push(...settlement.problems);
      for (const index of waiting) refused.add(index);
    }
    if (refused.size > 0) this.#reject(refused, problems);
  }

  #validate(layers: readonly ConfigMap[]): ReturnType<typeof validateLayers<T>> {
    const { clock, validateTimeoutMs } = this.#options;
    return validateLayers(layers, {
      validate: this.#options.validate as ConfigValidator<T>,
      timeoutMs: validateTimeoutMs,
      clock,
      signal: this.#lifecycle.scope.signal,
      sources: this.#sources.names,
    });
  }

  #accept(config: T): void {
    const previous = this.current;
    if (isSame(previous, config)) return;
    this.#current = { config, at: this.#options.clock.now() };
    this.#changes += 1;
    this.#tell('change', { previous, current: config, paths: differingPaths(previous, config) });
  }

  #reject(indexes: ReadonlySet<number>, problems: readonly ConfigProblem[]): void {
    this.#rejections += 1;
    this.#lastRejectedAt = this.#options.clock.now();
    const sources = [...indexes].map((index) => ({
      name: this.#sources.names[index] ?? '',
      digest: this.#sources.states[index]?.digest,
    }));
    this.#tell('rejected', { sources, problems });
  }

  #tell<E extends keyof ConfigLoaderEvents<T>>(event: E, ...args: ConfigLoaderEvents<T>[E]): void {
    if (this.state === 'closed') return;
    (this.emit as (event: E, ...args: ConfigLoaderEvents<T>[E]) => boolean).call(this, event, ...args);
  }
}

function invalid(problems: readonly ConfigProblem[]): ConfigError {
  const list = problems.map((problem) => `\n  ${problemText(problem)}`).join('');
  return new ConfigError('ERR_CONFIG_INVALID', `The configuration cannot be used:${list}`, { problems });
}
