import type { Clock } from '../core/ports/clock.js';
import { waitAtMost, withDeadline } from '../core/scheduling/deadline.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { ResilientError } from '../core/errors/resilient-error.js';
import { nextTurn } from '../core/scheduling/event-loop.js';
import type { SourceReader } from './config-source.js';
import type { ConfigWarning } from './places.js';
import { isSame } from './difference.js';
import type { ConfigLoaderEvents } from './loader-events.js';
import type { ConfigSourceStatus } from './loader-status.js';
import type { Layer, Reading } from './merge.js';
import { invalid, sourceProblems } from './problems.js';

/** The events of a loader about one of its sources. */
type SourceEvents = Pick<
  ConfigLoaderEvents<never>,
  'warning' | 'accepted' | 'unreadable' | 'readable' | 'degraded' | 'recovered'
>;

/** What a source needs of its loader. */
export interface SourcePorts {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Aborts when the loader is closed. */
  readonly signal: AbortSignal;
  /** The source may have changed, or watching it has met an error. */
  readonly changed: (source: LoadedSource, error: Error | undefined) => void;
  readonly tell: <E extends keyof SourceEvents>(event: E, payload: SourceEvents[E][0]) => void;
}

/**
 * The result of reading a source again.
 *
 * | outcome      | the source                       | its values                          |
 * |--------------|----------------------------------|-------------------------------------|
 * | `same`       | is unchanged, good or bad        | stay                                |
 * | `fresh`      | has new values                   | are pending until they are accepted |
 * | `bad`        | cannot be used, for a new reason | stay                                |
 * | `unreadable` | cannot be read, for a new reason | stay                                |
 */
export type ReadOutcome = 'same' | 'fresh' | 'bad' | 'unreadable';

/** The codes of a source with nothing to parse. */
const UNREADABLE: readonly string[] = ['ERR_CONFIG_MISSING', 'ERR_CONFIG_UNREADABLE'];

const NOTHING: Reading = { values: {} };

/** A longer list would not be read. */
const MAX_WARNINGS = 100;

/**
 * One layer of a loader: its reader, and two readings of it.
 *
 * | its newest values                          | it is    | when they become the accepted ones       |
 * |--------------------------------------------|----------|------------------------------------------|
 * | are accepted: they are in the configuration | current  | –                                        |
 * | are not                                    | pending  | as soon as they pass validation          |
 * | were, and were not healthy                 | reverted | when `retry()` has made them pending again |
 */
export class LoadedSource {
  readonly name: string;
  /** The digest of the bytes last read, if known. */
  digest: string | undefined;
  /** Why the source cannot be read or parsed; empty if it can. */
  problems: readonly ConfigProblem[] = [];
  /** Why its pending values are not accepted, as far as the values are its own. */
  refusals: readonly ConfigProblem[] = [];
  /** The error behind the problems, if it is of this library. */
  failure: Error | undefined;
  /** What it consists of, the lowest layer first. */
  members: readonly LoadedSource[] = [];
  #reader: SourceReader;
  /** Whether the source that it was a member of no longer has it: it provides nothing, and leaves once that is accepted. */
  #isGone = false;
  readonly #ports: SourcePorts;
  #newest = NOTHING;
  #accepted = NOTHING;
  /** What was accepted before that. */
  #before = NOTHING;
  #isReverted = false;
  /** What has been told: of what was read, and of its keys beside those of others. */
  readonly #warnings = { values: [] as readonly ConfigWarning[], keys: [] as readonly ConfigWarning[] };
  /** Monotonic ms. */
  #unreadableSince: number | undefined;
  /** Since when its newest contents are not used, monotonic ms. */
  #rejectedSince: number | undefined;
  #isDegraded = false;
  /** Whether watching has begun; undefined if the source is not watched. */
  #watching: Promise<boolean> | undefined;

  constructor(reader: SourceReader, ports: SourcePorts) {
    this.name = reader.name;
    this.#reader = reader;
    this.#ports = ports;
  }

  /** Whether the source can be watched. */
  get isWatchable(): boolean {
    return typeof this.#reader.provider?.watch === 'function';
  }

  get #isUsed(): boolean {
    return this.problems.length === 0 && this.#newest === this.#accepted;
  }

  get isPending(): boolean {
    return this.#newest !== this.#accepted && !this.#isReverted;
  }

  status(isLoaded: boolean): ConfigSourceStatus {
    const { name, problems, refusals } = this;
    const isBad = problems.length > 0 || (isLoaded && this.#newest !== this.#accepted);
    return {
      name,
      state: isBad ? 'rejected' : isLoaded ? 'current' : 'unread',
      degraded: this.#isDegraded,
      digest: this.digest ?? null,
      problems: problems.length > 0 ? problems : refusals,
    };
  }

  /**
   * Begins to watch the source, if possible, and then reads it, so that no change is missed. Never rejects: failures
   * are in `problems`.
   */
  async open(): Promise<void> {
    try {
      await this.#inTime(() => this.#watch());
    } catch (error) {
      this.#fail(error);
      return;
    }
    await this.#read();
    await Promise.all(this.members.map((member) => member.#read()));
  }

  /** Makes the provider check its cached state. Never rejects: reading the source afterwards yields the reason. */
  async check(): Promise<void> {
    await this.#inTime(() => this.#reader.provider?.check?.()).catch(() => undefined);
  }

  /** Reads the source again, and tells whether it can be read, if that is news. Never rejects. */
  async read(): Promise<ReadOutcome> {
    const { name: source } = this;
    const { clock, tell } = this.#ports;
    const before = this.#unreadableSince;
    const outcome = await this.#read();
    const since = this.#unreadableSince;
    if (before === undefined && since !== undefined)
      tell('unreadable', { error: invalid(this.problems), source });
    if (before !== undefined && since === undefined) {
      tell('readable', { unreadableMs: clock.monotonic() - before, source });
    }
    return outcome;
  }

  /** Tells that its newest contents are in use again, if they were not; to be called after each update. */
  settle(): void {
    for (const member of this.members) member.settle();
    this.members = this.members.filter((member) => !member.#isGone || !member.#isUsed);
    const { name: source } = this;
    const { clock, tell } = this.#ports;
    const since = this.#rejectedSince;
    const isUsed = this.#isUsed;
    // What cannot be read has events of its own.
    if (!isUsed && this.#unreadableSince === undefined) this.#rejectedSince ??= clock.monotonic();
    if (!isUsed || since === undefined) return;
    this.#rejectedSince = undefined;
    tell('accepted', { rejectedMs: clock.monotonic() - since, source });
  }

  /** The layer of the configuration. @param newest whether to use the pending values, if there are any */
  layer(newest: boolean): Layer {
    const { values, placeOf, fileOf } = newest ? this.#newest : this.#accepted;
    const { ignoresCase, namesKeys, setsPaths } = this.#reader;
    return { source: this.name, values, ignoresCase, namesKeys, setsPaths, placeOf, fileOf };
  }

  /** Accepts the newest values into the configuration. */
  accept(): void {
    this.#before = this.#accepted;
    this.#accepted = this.#newest;
    this.refusals = [];
  }

  /** Returns to what was in the configuration before. */
  revert(problem: ConfigProblem): void {
    this.#accepted = this.#before;
    this.#isReverted = true;
    this.refusals = [problem];
  }

  /** Makes reverted values pending again: another source that was reverted with this one has changed. */
  retry(): void {
    this.#isReverted = false;
  }

  /** Tells each warning once, until it is no longer true. */
  warn(about: 'values' | 'keys', warnings: readonly ConfigWarning[]): void {
    const before = this.#warnings[about];
    this.#warnings[about] = warnings.slice(0, MAX_WARNINGS);
    for (const warning of this.#warnings[about]) {
      if (!before.some(({ message }) => message === warning.message)) this.#ports.tell('warning', warning);
    }
  }

  /** Stops watching the source. Never rejects. */
  async close(): Promise<void> {
    const watching = this.#watching;
    this.#watching = undefined;
    this.#isDegraded = false;
    // If watching was refused, other code watches the provider, and its watch must not be ended. Waiting for a turn
    // lets a pending refusal arrive; a watch that is still being set up must be ended as well.
    if (!(await Promise.race([watching, nextTurn().then(() => watching !== undefined)]))) return;
    const { clock, timeoutMs } = this.#ports;
    // A custom provider that fails to stop is left alone; there is nothing else to do.
    await waitAtMost(() => this.#reader.provider?.unwatch?.(), { clock, timeoutMs });
  }

  #watch(): Promise<void> | undefined {
    const { name: source } = this;
    const { changed, tell } = this.#ports;
    const begun = this.#reader.provider?.watch?.((_, error) => changed(this, error), {
      readable: () => changed(this, undefined),
      degraded: (degradation) => {
        this.#isDegraded = true;
        tell('degraded', { ...degradation, source });
      },
      recovered: (recovery) => {
        this.#isDegraded = false;
        tell('recovered', { ...recovery, source });
      },
    });
    this.#watching = begun?.then(
      () => true,
      () => false,
    );
    return begun;
  }

  async #read(): Promise<ReadOutcome> {
    const before = { digest: this.digest, problems: this.problems };
    const { provider } = this.#reader;
    try {
      const { parts = [], ...reading } = await this.#inTime(() => this.#reader.read());
      this.digest = provider?.digest;
      this.problems = [];
      this.failure = undefined;
      this.#unreadableSince = undefined;
      this.warn('values', reading.warnings ?? []);
      this.#divide(parts);
      return this.#take(reading) ? 'fresh' : 'same';
    } catch (error) {
      this.digest = provider?.digest;
      this.#fail(error);
      if (isSame(before, { digest: this.digest, problems: this.problems })) return 'same';
      return this.#unreadableSince === undefined ? 'bad' : 'unreadable';
    }
  }

  /** Makes these its members. */
  #divide(parts: readonly SourceReader[]): void {
    const before = this.members;
    const known = new Map(before.map((member) => [member.name, member]));
    const members = parts.map((part) => {
      const member = known.get(part.name) ?? new LoadedSource(part, this.#ports);
      member.#reader = part;
      member.#isGone = false;
      return member;
    });
    // Until its end is accepted, one that is gone keeps its place before the next one.
    const present = new Set(members);
    for (const [index, member] of before.entries()) {
      if (present.has(member)) continue;
      const { provider: _, ...reader } = member.#reader;
      member.#reader = { ...reader, read: () => NOTHING };
      member.#isGone = true;
      const next = before.slice(index + 1).find((each) => present.has(each));
      members.splice(next ? members.indexOf(next) : members.length, 0, member);
    }
    this.members = members;
  }

  /** Stores the newest values. Returns false if they are the same as before; they may be on other lines. */
  #take(reading: Reading): boolean {
    const { values } = reading;
    const isFresh = !isSame(values, this.#newest.values);
    if (isSame(values, this.#accepted.values)) this.#accepted = reading;
    this.#newest = reading;
    if (isFresh) {
      this.#isReverted = false;
      this.refusals = [];
    }
    return isFresh;
  }

  #fail(error: unknown): void {
    this.problems = sourceProblems(error, this.name);
    this.failure = error instanceof Error ? error : undefined;
    // An error from other code does not tell reading from parsing, because a provider may do both.
    const isUnreadable =
      error instanceof ResilientError && this.problems.every(({ code }) => UNREADABLE.includes(code));
    if (isUnreadable) this.#unreadableSince ??= this.#ports.clock.monotonic();
    else this.#unreadableSince = undefined;
  }

  #inTime<T>(work: () => T | Promise<T>): Promise<T> {
    const { clock, timeoutMs, signal } = this.#ports;
    const late = (): Error =>
      new ConfigError('ERR_CONFIG_TIMEOUT', `it was not read and parsed within ${timeoutMs} ms`);
    return withDeadline(work, { clock, timeoutMs, signal, late });
  }
}
