import pRetry from 'p-retry';

import type { Backoff } from '../core/backoff.js';
import { endInTime, withDeadline } from '../core/deadline.js';
import { BackendError } from '../core/backend-error.js';
import { TokenError } from '../core/token-error.js';
import type { Degradation, Readable, Recovery, Unreadable } from '../core/events.js';
import { matching } from '../core/options.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { redactError } from '../core/resilient-error.js';
import { sleep } from '../core/sleep.js';
import { TokenCredential } from '../core/token-client.js';
import { ResilientWatcher } from '../watch/resilient-watcher.js';

/** The state of a file as reported by a watcher; `content` is undefined while the file is missing. */
export interface TokenFileChange {
  readonly current: { readonly content?: Uint8Array | undefined };
}

/** The part of `ResilientWatcher` that is needed to follow a token file. */
export interface TokenWatcher {
  on(event: 'change', listener: (change: TokenFileChange) => void): unknown;
  /** The events of `ResilientWatcher`, and `close` when the watcher ended without being closed. */
  on(event: TokenWatcherEvent, listener: (detail?: unknown) => void): unknown;
  start(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** The events of a watcher about its own state. */
export type TokenWatcherEvent = 'unreadable' | 'readable' | 'degraded' | 'recovered' | 'error' | 'close';

/** Creates the watcher of a token file. Called again when a watcher cannot be started, or ends without being closed. */
export type TokenWatcherFactory = (path: string) => TokenWatcher;

/** The option `watcherFactory`. */
export const tokenWatcherFactory = matching<TokenWatcherFactory | undefined>(
  undefined,
  'a function',
  (value) => typeof value === 'function',
);

interface TokenWatchOptions {
  readonly path: string;
  readonly watcherFactory: TokenWatcherFactory | undefined;
  readonly clock: Clock;
  readonly fs: FileSystem;
  readonly random: Random;
  /** Whether watching keeps the process alive. */
  readonly persistent: boolean;
  readonly backoff: Backoff;
  /** The timeout of a start, and of an end, ms. */
  readonly startTimeoutMs: number;
  /** How often the file is read while no watcher can be started, ms. */
  readonly pollIntervalMs: number;
  /** Called with the text of the file whenever it differs; `initial` if it was there from the start. */
  readonly onText: (text: string, initial: boolean) => void;
  readonly onUnreadable: (event: Unreadable & { readonly error: TokenError }) => void;
  readonly onReadable: (event: Readable) => void;
  readonly onDegraded: (event: Degradation) => void;
  readonly onRecovered: (event: Recovery) => void;
}

/** Why a watcher that was not closed is gone. */
const ENDED = 'the watcher ended by itself';

/** Why changes may be noticed late: there is no watcher (`down`), or the watcher is degraded (`polling`). */
interface Degraded {
  readonly kind: 'down' | 'polling';
  readonly since: number;
}

/**
 * Keeps a token file watched, whatever happens to the watcher. Failures are reported and never thrown: tokens must be
 * refreshed even without a watcher.
 *
 * | state    | what happens                     | next                                          |
 * |----------|----------------------------------|-----------------------------------------------|
 * | starting | started                          | watching; `recovered` if it was degraded      |
 * |          | threw, rejected, took too long   | starting after a delay; `degraded`            |
 * | watching | the watcher says `degraded`      | watching; `degraded` until it says `recovered` |
 * |          | the watcher says `unreadable`    | watching; `unreadable` until `readable`       |
 * |          | the watcher says `close`         | starting; `degraded`                          |
 * | any      | close                            | closed                                        |
 */
export class TokenWatch {
  readonly #options: TokenWatchOptions;
  readonly #controller = new AbortController();
  #watcher: TokenWatcher | undefined;
  #work: Promise<void> | undefined;
  #degraded: Degraded | undefined;
  #unreadableSince: number | undefined;
  #credential: TokenCredential | undefined;
  #attempted = false;

  constructor(options: TokenWatchOptions) {
    this.#options = options;
  }

  /** Whether changes of the file are noticed immediately. */
  get watching(): boolean {
    return this.#watcher !== undefined && !this.#degraded && this.#unreadableSince === undefined;
  }

  /** The last contents of the file that were not empty. */
  get credential(): TokenCredential | undefined {
    return this.#credential;
  }

  /** Resolves after the first attempt, whether it succeeded or not. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#work = this.#keepStarting(resolve);
    });
  }

  async close(): Promise<void> {
    this.#controller.abort();
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await Promise.all([this.#work, this.#end(watcher)]);
  }

  async #keepStarting(onAttempted: () => void = () => {}): Promise<void> {
    const { signal } = this.#controller;
    const { clock, backoff, persistent: ref, pollIntervalMs } = this.#options;
    try {
      await pRetry(() => this.#startOnce(), {
        retries: Infinity,
        // p-retry uses the system's clock and has no jitter at the maximum delay, so the delays are computed here.
        minTimeout: 0,
        signal,
        onFailedAttempt: async ({ error }) => {
          this.#degrade('down', error, pollIntervalMs);
          onAttempted();
          await sleep(clock, backoff.next(), { signal, ref });
        },
      });
    } catch {
      return; // Closed.
    }
    backoff.reset();
    if (this.#degraded?.kind === 'down') this.#recover(undefined);
    onAttempted();
  }

  async #startOnce(): Promise<void> {
    const { path, watcherFactory = resilientWatcher(this.#options), clock, startTimeoutMs } = this.#options;
    let watcher: TokenWatcher | undefined;
    try {
      const started = (watcher = watcherFactory(path));
      // Before a later attempt the file may have changed unseen, so only the first one finds what was there.
      let initial = !this.#attempted;
      const state = { hasEnded: false };
      this.#attempted = true;
      started.on('change', (change) => this.#onChange(change, initial));
      started.on('unreadable', (detail) => this.#onUnreadable(reasonOf(detail)));
      started.on('readable', () => this.#onReadable());
      started.on('degraded', (detail) => this.#degrade('polling', reasonOf(detail), intervalOf(detail)));
      started.on('recovered', (detail) => this.#recover(detail));
      started.on('error', (error) => this.#onError(reasonOf(error)));
      started.on('close', () => {
        state.hasEnded = true;
        this.#ended(started);
      });
      await withDeadline(() => started.start(), {
        clock,
        timeoutMs: startTimeoutMs,
        signal: this.#controller.signal,
        late: () => new Error(`it did not start within ${startTimeoutMs} ms`),
      });
      initial = false;
      // Either may have happened after the start, but before this was reached.
      this.#controller.signal.throwIfAborted();
      if (state.hasEnded) throw new Error(ENDED);
      this.#watcher = started;
    } catch (cause) {
      await this.#end(watcher);
      // p-retry does not retry a TypeError.
      throw this.#unwatchable(reasonOf(cause));
    }
  }

  #onChange({ current }: TokenFileChange, initial: boolean): void {
    if (this.#controller.signal.aborted) return;
    this.#onReadable();
    const { path, clock, onText } = this.#options;
    const text = current.content && Buffer.from(current.content).toString('utf8').trim();
    if (!text || text === this.#credential?.value) return;
    this.#credential = new TokenCredential({ value: text, path, seenAt: clock.now() });
    onText(text, initial);
  }

  #onError(error: Error): void {
    if (error instanceof BackendError) this.#degrade('polling', error, undefined);
    else this.#onUnreadable(error);
  }

  #ended(watcher: TokenWatcher): void {
    if (watcher !== this.#watcher || this.#controller.signal.aborted) return;
    const { pollIntervalMs } = this.#options;
    this.#watcher = undefined;
    this.#degrade('down', this.#unwatchable(new Error(ENDED)), pollIntervalMs);
    this.#work = this.#keepStarting();
  }

  #onUnreadable(reason: Error): void {
    if (this.#unreadableSince !== undefined || this.#controller.signal.aborted) return;
    const { path, clock, onUnreadable } = this.#options;
    this.#unreadableSince = clock.monotonic();
    const cause = this.#shown(reason);
    const message = `Cannot read the token file ${path}: ${cause.message}`;
    onUnreadable({ error: new TokenError('ERR_TOKEN_FILE', message, { cause }) });
  }

  #onReadable(): void {
    if (this.#unreadableSince === undefined || this.#controller.signal.aborted) return;
    const unreadableMs = this.#options.clock.monotonic() - this.#unreadableSince;
    this.#unreadableSince = undefined;
    this.#options.onReadable({ unreadableMs });
  }

  #degrade(kind: Degraded['kind'], reason: Error, pollIntervalMs: number | undefined): void {
    if (this.#controller.signal.aborted) return;
    const { clock, onDegraded } = this.#options;
    const wasDegraded = this.#degraded !== undefined;
    this.#degraded = { kind, since: this.#degraded?.since ?? clock.monotonic() };
    if (wasDegraded) return;
    const error = this.#unwatchable(reason);
    onDegraded({ error, pollIntervalMs: pollIntervalMs ?? this.#options.pollIntervalMs });
  }

  #recover(detail: unknown): void {
    if (!this.#degraded || this.#controller.signal.aborted) return;
    const degradedMs = this.#options.clock.monotonic() - this.#degraded.since;
    this.#degraded = undefined;
    const { backend } = Object(detail) as { backend?: unknown };
    this.#options.onRecovered({ backend: typeof backend === 'string' ? backend : 'watcher', degradedMs });
  }

  /** Closes a watcher that may be broken: one that cannot be closed is left alone. */
  #end(watcher: TokenWatcher | undefined): Promise<void> {
    const { clock, startTimeoutMs: timeoutMs } = this.#options;
    return endInTime(() => watcher?.close(), { clock, timeoutMs });
  }

  #unwatchable(reason: Error): BackendError {
    if (reason instanceof BackendError) return reason;
    const cause = this.#shown(reason);
    const message = `Cannot watch the token file ${this.#options.path}: ${cause.message}`;
    return new BackendError('ERR_BACKEND_UNAVAILABLE', 'watcher', message, { cause });
  }

  /** Redacted: a custom watcher may have put the token into its error. */
  #shown(reason: Error): Error {
    return redactError(reason, this.#credential ? [this.#credential.value] : []);
  }
}

/** The error in the detail of an event: the detail itself, or one of its fields. */
function reasonOf(detail: unknown): Error {
  if (detail instanceof Error) return detail;
  const fields: readonly unknown[] = Object.values(Object(detail) as object);
  return fields.find((value) => value instanceof Error) ?? new Error('no reason was given');
}

function intervalOf(detail: unknown): number | undefined {
  const { pollIntervalMs } = Object(detail) as { pollIntervalMs?: unknown };
  return typeof pollIntervalMs === 'number' ? pollIntervalMs : undefined;
}

function resilientWatcher(options: TokenWatchOptions): TokenWatcherFactory {
  const { clock, fs, random, persistent } = options;
  return (path) => new ResilientWatcher(path, { clock, fs, random, persistent });
}
