/**
 * Serves the last good configuration and follows its sources.
 *
 * | state      | `start()`, `load()` | a source changed               | `close()`  |
 * |------------|---------------------|--------------------------------|------------|
 * | `idle`     | → `starting`        | –                              | → `closed` |
 * | `starting` | same promise        | an update follows the load     | → `closed` |
 * | `running`  | same promise        | an update (update-schedule.ts) | → `closed` |
 * | `closed`   | rejects             | –                              | –          |
 *
 * `starting` watches and reads every source and validates the result. If anything is wrong, `start()` rejects and the
 * state is `idle` again; otherwise the first `change` is emitted, and it is `running`.
 *
 * | a changed source    | then                                                            |
 * |---------------------|-----------------------------------------------------------------|
 * | cannot be read      | `unreadable`, once; its last good values stay                   |
 * | cannot be parsed    | `rejected`, once for each such state; its last good values stay |
 * | has the same values | nothing; `accepted` if other ones were rejected meanwhile        |
 * | has other values    | they are pending, and acceptance.ts decides which are accepted  |
 *
 * Accepted values become `current`, and `change` is emitted if they differ. Changed values that are not accepted are
 * `rejected`, and validated again with every later change. With the option `trial`, accepted values that are not healthy
 * in time are `reverted`, and not tried again until one of the sources that were reverted has changed. If a
 * validator or parser throws or takes too long, the values are refused; a late result is ignored.
 */
import { Component, type LastError } from '../core/lifecycle/component.js';
import { resolveOptions } from '../core/options/options.js';
import type { ConfigProblem } from './config-error.js';
import { ClosedError } from '../core/errors/errors.js';
import { TargetError } from '../fs/target-error.js';
import { readerOf } from './config-source.js';
import { digestOf, type ConfigMap } from './config-value.js';
import { describeKeys, tableOf, type ConfigKey } from './config-description.js';
import { differingPaths } from './difference.js';
import { jsonSchemaOf } from './json-schema.js';
import type { ConfigLoaderEvents } from './loader-events.js';
import {
  LOADER_OPTIONS,
  type ConfigLoaderOptions,
  type ResolvedLoaderOptions,
  type SchemaLoaderOptions,
} from './loader-options.js';
import { loaderDescription, type ConfigLoaderStatus } from './loader-status.js';
import { mergeLayers, type Layer } from './merge.js';
import { invalid, listed, problemAt } from './problems.js';
import { acceptPending, RevertedSources } from './acceptance.js';
import { LoadedSource, type ReadOutcome, type SourcePorts } from './loaded-source.js';
import { faultOf } from './trial.js';
import { selectionListener, type Selection, type SelectOptions } from './selection.js';
import { unmatchedVariables } from './unmatched-variables.js';
import { UpdateSchedule } from './update-schedule.js';
import { validateLayers, type ConfigValidator, type ValidationOptions, type Verdict } from './validation.js';

/** The result of a load or an update, for telemetry. */
type ReloadResult = 'accepted' | 'unchanged' | 'rejected';

/** The configuration in use. */
interface Current<T> {
  readonly config: T;
  readonly at: number;
  readonly layers: readonly Layer[];
  digest?: string;
}

/** What has become of pending values. */
interface Accepted {
  /** Why some are still pending. */
  readonly problems: readonly ConfigProblem[];
  /** `rejected` if they were accepted, and were not healthy; undefined if none was accepted. */
  readonly result?: ReloadResult;
}

/**
 * A configuration from several sources: validated, replaced as a whole, and kept up to date.
 *
 * ```ts
 * const loader = new ConfigLoader({
 *   sources: [
 *     { values: { log: { level: 'info' } } },
 *     { provider: new FileProvider('/etc/app/app.yaml') },
 *     { env: { prefix: 'APP_' } },
 *   ],
 *   validate: z.object({ log: z.object({ level: z.string() }) }),
 * });
 * const config = await loader.load();
 * loader.select((c) => c.log.level, (level) => logger.setLevel(level));
 * loader.on('rejected', ({ problems }) => logger.warn(problems));
 * ```
 */
export class ConfigLoader<T = ConfigMap> extends Component<ConfigLoaderEvents<T>, ConfigLoaderStatus> {
  readonly #options: ResolvedLoaderOptions;
  /** Those of the options. */
  readonly #given: readonly LoadedSource[];
  readonly #updates: UpdateSchedule;
  readonly #validation: ValidationOptions<T>;
  #current: Current<T> | undefined;
  readonly #reverted = new RevertedSources();
  #reloadedAt: number | null = null;
  #changes = 0;
  #rejections = 0;
  #lastRejectedAt: number | null = null;
  /** Why a load failed, or contents of a source are not used. */
  #fault: LastError | null = null;

  /**
   * Does no I/O.
   * @throws {TypeError | RangeError} for an invalid option or source.
   */
  constructor(options: SchemaLoaderOptions<T>);
  // eslint-disable-next-line @typescript-eslint/unified-signatures -- a schema of arktype is also a function
  constructor(options: ConfigLoaderOptions<T>);
  constructor(options: ConfigLoaderOptions<T>) {
    const resolved = resolveOptions('ConfigLoader', options, LOADER_OPTIONS);
    super({ ...resolved, kind: 'ConfigLoader', description: loaderDescription });
    this.#options = resolved;
    const { clock, settleMs, parseTimeoutMs, validateTimeoutMs } = resolved;
    const { signal } = this.lifetime;
    const validate = resolved.validate as ConfigValidator<T> | undefined;
    this.#validation = { validate, timeoutMs: validateTimeoutMs, clock, signal };
    const ports: SourcePorts = {
      clock,
      timeoutMs: parseTimeoutMs,
      signal,
      changed: this.#changed,
      tell: this.#tell,
    };
    this.#given = resolved.sources.map((each, index) => new LoadedSource(readerOf(each, index), ports));
    this.#updates = new UpdateSchedule({ sources: this.#given, clock, settleMs, update: this.#update });
  }

  /** Those of the options, each with what it consists of, the lowest layer first. */
  get #sources(): readonly LoadedSource[] {
    return this.#given.flatMap((source) => [source, ...source.members]);
  }

  /** The last good configuration, deeply frozen (instances of classes are not); undefined until one is loaded. */
  get current(): T | undefined {
    return this.#current?.config;
  }

  status(): ConfigLoaderStatus {
    return {
      name: this.name,
      state: this.lifecycleState,
      lastError: this.lastError,
      loadedAt: this.#current?.at ?? null,
      digest: this.#currentDigest(),
      reloadedAt: this.#reloadedAt,
      changes: this.#changes,
      rejections: this.#rejections,
      lastRejectedAt: this.#lastRejectedAt,
      sources: this.#sources.map((source) => source.status(this.#current !== undefined)),
    };
  }

  /**
   * Describes the keys of the schema and of the sources, as data or as a table: type, default, and the source of the
   * current value, never the value. Types and defaults come from a schema that is also a Standard JSON Schema (zod,
   * arktype); otherwise types are those of the values, and defaults those of the first source if it is `values`.
   * Before `load()`, only the schema is known.
   */
  describe(): readonly ConfigKey[];
  describe(format: 'text' | 'markdown'): string;
  describe(format?: 'text' | 'markdown'): readonly ConfigKey[] | string {
    const layers = this.#sources.map((source) => source.layer(false));
    const [first] = this.#options.sources;
    const defaults = first && 'values' in first ? (layers[0]?.values ?? {}) : {};
    const isLoaded = this.#current !== undefined;
    const keys = describeKeys(jsonSchemaOf(this.#options.validate), layers, { defaults, isLoaded });
    return format === undefined ? keys : tableOf(keys, format);
  }

  /**
   * Starts the loader and resolves to the current configuration. After a failure it can be called again.
   * @throws {ConfigError} (rejects) `ERR_CONFIG_INVALID` with all problems of all sources.
   * @throws {ClosedError} (rejects) after or during `close()`; the signal's reason when that has aborted.
   */
  async load(): Promise<T> {
    await this.start();
    return this.current as T;
  }

  /**
   * Checks and reads all sources again, and validates refused values again. Resolves when that is done. Use it for
   * sources that cannot be watched, or if the verdict of the validator may have changed.
   * @throws {ClosedError} (rejects) when the loader is not running; the signal's reason when that has aborted.
   */
  async check(): Promise<void> {
    await Promise.all(this.#given.map((source) => source.check()));
    if (await this.#updates.updateAll()) return;
    this.throwIfClosed();
    throw new ClosedError(`Cannot check the configuration: the loader is ${this.lifecycleState}`);
  }

  /**
   * Calls `listener` after each change of the selection, compared deeply; with `immediate`, also with the first one.
   * Returns a function that removes the listener. If the selector or the listener throws, the error is emitted as
   * `error`; in a call within `select()` it is thrown here, and the listener is not added.
   * @throws {TypeError} for a wrong argument or option.
   */
  select<S>(selector: (config: T) => S, listener: (selected: S, previous: S) => unknown): () => void;
  select<S>(
    selector: (config: T) => S,
    listener: (selected: S, previous: S | undefined) => unknown,
    options: SelectOptions,
  ): () => void;
  select<S>(
    selector: (config: T) => S,
    listener: (selected: S, previous: S) => unknown,
    options?: SelectOptions,
  ): () => void {
    const selection = { selector, listener: listener as Selection<T, S>['listener'], options };
    const listen = selectionListener(selection, this.#current, (error) => this.fail(error));
    // The emitter's types cannot infer a listener's arguments while T is open.
    const onChange = listen as never;
    this.on('change', onChange);
    return () => void this.off('change', onChange);
  }

  protected override get purpose(): string {
    return 'load the configuration';
  }

  protected override async onStart(): Promise<void> {
    try {
      await this.#reload(() => this.#loadAll());
    } catch (error) {
      if (this.lifecycleState !== 'closed') {
        this.#recordFault(error as Error);
        await this.lifetime.track(this.#closeSources());
      }
      throw error;
    }
  }

  protected override onRunning(): void {
    this.#updates.open();
  }

  protected override onClose(): Promise<unknown> {
    this.#updates.close();
    return this.#closeSources();
  }

  async #loadAll(): Promise<ReloadResult> {
    this.#updates.reset();
    await Promise.all(this.#given.map((source) => source.open()));
    const unread = listed(this.#sources.flatMap(({ problems }) => problems));
    if (unread.length > 0) throw invalid(unread, this.#sources.find(({ failure }) => failure)?.failure);
    const layers = this.#sources.map((source) => source.layer(true));
    const verdict = await validateLayers(layers, this.#validation);
    await this.#warnOfKeys(verdict);
    if ('problems' in verdict) throw invalid(verdict.problems);
    for (const source of this.#sources) source.accept();
    this.#use(verdict.config);
    return 'accepted';
  }

  /** Runs a load or an update as a traced operation, for which the end waits. */
  async #reload(work: () => Promise<ReloadResult>): Promise<void> {
    const result = await this.lifetime.track(this.trace('config.reload', {}, work, (value) => value));
    if (result !== 'rejected') this.#reloadedAt = this.#options.clock.now();
    for (const source of this.#given) source.settle();
    if (this.status().sources.every(({ state }) => state === 'current')) this.forgetError(this.#fault);
  }

  #recordFault(error: Error): void {
    this.recordError(error);
    this.#fault = this.lastError;
  }

  #closeSources(): Promise<unknown> {
    return Promise.all(this.#given.map((source) => source.close()));
  }

  /** A provider has called back. */
  readonly #changed = (source: LoadedSource, error: Error | undefined): void => {
    if (this.lifetime.ended) return;
    // Reading the source meets a read error again.
    if (error && !(error instanceof TargetError)) this.fail(error);
    this.#updates.changed(source);
  };

  /** Reports an event of a source. */
  readonly #tell: SourcePorts['tell'] = (event, payload) => {
    if (this.lifetime.ended) return;
    if ('error' in payload) this.#recordFault(payload.error);
    this.tell(event, payload);
  };

  /** Never rejects. */
  readonly #update = async (sources: readonly LoadedSource[], retry: boolean): Promise<void> => {
    try {
      await this.#reload(() => this.#readAndAccept(sources, retry));
    } catch (error) {
      if (this.lifecycleState !== 'closed') this.fail(error);
    }
  };

  /** @param retry whether pending values are validated again even if no source has changed */
  async #readAndAccept(sources: readonly LoadedSource[], retry: boolean): Promise<ReloadResult> {
    const outcomes = await outcomesOf(sources);
    const unread = [...outcomes.values()].includes('unreadable') ? 'rejected' : 'unchanged';
    if (this.lifetime.ended) return unread;
    const fresh = new Set<LoadedSource>();
    const refused: LoadedSource[] = [];
    const problems: ConfigProblem[] = [];
    for (const [source, outcome] of outcomes) {
      if (outcome === 'fresh') fresh.add(source);
      if (outcome !== 'bad') continue;
      refused.push(source);
      problems.push(...source.problems);
    }
    const accepted = fresh.size > 0 || retry ? await this.#accept(fresh) : undefined;
    const pending = [...fresh].filter((source) => source.isPending);
    if (pending.length > 0) problems.push(...(accepted?.problems ?? []));
    refused.push(...pending);
    if (refused.length === 0) return accepted?.result ?? unread;
    this.#reject(refused, listed(problems));
    return 'rejected';
  }

  /** Accepts what is valid. After a trial that has failed, the sources that have changed are tried alone. */
  async #accept(fresh: ReadonlySet<LoadedSource>): Promise<Accepted> {
    const related = this.#options.trial ? this.#reverted.retryWith(fresh) : fresh;
    let accepted = await this.#acceptPending(fresh, related);
    if (accepted.result === 'rejected' && [...related].some((source) => !fresh.has(source))) {
      for (const source of fresh) source.retry();
      accepted = await this.#acceptPending(fresh, fresh);
    }
    for (const each of this.#sources.filter(({ isPending }) => isPending)) {
      each.refusals = accepted.problems.filter(({ source }) => source === each.name);
    }
    return accepted;
  }

  /**
   * Accepts what is valid, and returns to the configuration before if the new one is not healthy in time.
   * @param related the sources that were in an earlier trial with one of these
   */
  async #acceptPending(
    fresh: ReadonlySet<LoadedSource>,
    related: ReadonlySet<LoadedSource>,
  ): Promise<Accepted> {
    const pending = this.#sources.filter((source) => source.isPending);
    const { accepted, problems } = await acceptPending(this.#sources, fresh, this.#validation);
    const previous = this.#current;
    if (!accepted || !previous) return { problems };
    if (!this.#use(accepted.config)) return { problems, result: 'unchanged' };
    await this.#warnOfKeys(accepted);
    const { trial, clock } = this.#options;
    const { signal } = this.lifetime;
    const error = trial && (await faultOf(accepted.config, trial, { clock, signal }));
    if (!error) return { problems, result: 'accepted' };
    const reverted = pending.filter((source) => !source.isPending);
    for (const source of reverted) source.revert(problemAt(error.code, source.name, error.message));
    this.#reverted.add([...related, ...reverted]);
    this.#recordFault(error);
    this.#use(previous.config);
    this.dispatch('reverted', { error, sources: reverted.map(({ name }) => name) });
    return { problems, result: 'rejected' };
  }

  /** Warns of variables that set no known key. */
  async #warnOfKeys({ layers, ...verdict }: Verdict<T>): Promise<void> {
    const schema = jsonSchemaOf(this.#options.validate);
    const config = 'config' in verdict ? verdict.config : undefined;
    for (const [index, layer] of layers.entries()) {
      this.#sources[index]?.warn('keys', await unmatchedVariables(layer, { layers, schema, config }));
    }
  }

  /** Only if somebody asks: it takes time for many values. */
  #currentDigest(): string | null {
    const current = this.#current;
    if (!current) return null;
    return (current.digest ??= digestOf(
      mergeLayers(current.layers, jsonSchemaOf(this.#options.validate)).values,
    ));
  }

  /** Makes this the current configuration. Returns false if it is the same as before. */
  #use(config: T): boolean {
    const before = this.#current;
    const paths = differingPaths(before ? before.config : {}, config);
    if (before && paths.length === 0) return false;
    const layers = this.#sources.map((source) => source.layer(false));
    this.#current = { config, at: this.#options.clock.now(), layers };
    if (before) this.#changes += 1;
    this.dispatch('change', { previous: before?.config, current: config, paths });
    return true;
  }

  #reject(refused: readonly LoadedSource[], problems: readonly ConfigProblem[]): void {
    this.#rejections += 1;
    this.#lastRejectedAt = this.#options.clock.now();
    const error = invalid(problems);
    this.#recordFault(error);
    const sources = refused.map(({ name, digest }) => ({ name, digest }));
    this.dispatch('rejected', { error, sources, problems });
  }
}

/** Reads sources, and what they consist of, again. */
async function outcomesOf(sources: readonly LoadedSource[]): Promise<ReadonlyMap<LoadedSource, ReadOutcome>> {
  const outcomes = await Promise.all(sources.map(async (source) => [source, await source.read()] as const));
  const members = sources.flatMap((source) => source.members);
  const below = members.length > 0 ? await outcomesOf(members) : [];
  return new Map([...outcomes, ...below]);
}
