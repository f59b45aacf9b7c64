import pRetry from 'p-retry';

import type { Backoff } from '../core/backoff.js';
import { withDeadline } from '../core/deadline.js';
import { TokenError } from '../core/errors.js';
import { matching } from '../core/options.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { ResilientWatcher } from '../watch/resilient-watcher.js';
import { sleep } from '../core/sleep.js';

/** What a watcher says a file has become; `content` is undefined while there is none. */
export interface TokenFileChange {
  readonly current: { readonly content?: Uint8Array | undefined };
}

/** As much of `ResilientWatcher` as following a token file takes. */
export interface TokenWatcher {
  on(event: 'change', listener: (change: TokenFileChange) => void): unknown;
  /** As of `ResilientWatcher`; `close` when it ended by itself. */
  on(
    event: 'degraded' | 'recovered' | 'unreadable' | 'readable' | 'error' | 'close',
    listener: (detail?: unknown) => void,
  ): unknown;
  start(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** Makes the watcher of a token file. Called again when one cannot be started or ended by itself. */
export type TokenWatcherFactory = (path: string) => TokenWatcher;

/** The option of that name, for whatever keeps a token watch. */
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
  /** A start is given up after this long, ms. */
  readonly startTimeoutMs: number;
  /** The file's text, whenever it differs from the last one; `initial` when it was there from the start. */
  readonly onText: (text: string, initial: boolean) => void;
  readonly onDegraded: (error: Error) => void;
  readonly onRecovered: () => void;
}

/**
 * Keeps a watcher on a token file, whatever happens to the watcher. Its trouble is told and never thrown: who
 * follows a token must be able to do without.
 *
 * | state    | what happens                     | next                                        |
 * |----------|----------------------------------|---------------------------------------------|
 * | starting | started                          | watching; `recovered` if it was degraded     |
 * |          | threw, rejected, took too long   | starting after a pause; `degraded`           |
 * | watching | the watcher says `degraded`      | watching; `degraded` until it says otherwise |
 * |          | the watcher says `close`         | starting; `degraded`                         |
 * | any      | close                            | closed                                      |
 */
export class TokenWatch {
  readonly #options: TokenWatchOptions;
  readonly #controller = new AbortController();
  #watcher: TokenWatcher | undefined;
  #work: Promise<void> | undefined;
  #degraded: 'down' | 'error' | undefined;
  #text: string | undefined;
  #attempted = false;

  constructor(options: TokenWatchOptions) {
    this.#options = options;
  }

  /** Whether changes of the file are seen. */
  get watching(): boolean {
    return this.#watcher !== undefined && !this.#degraded;
  }

  /** Resolves after the first attempt, be it good or bad. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#work = this.#keepStarting(resolve);
    });
  }

  async close(): Promise<void> {
    this.#controller.abort();
    const watcher = this.#watcher;
    this.#watcher = undefined;
    await Promise.all([this.#work, quietly(watcher)]);
  }

  async #keepStarting(onAttempted: () => void = () => {}): Promise<void> {
    const { signal } = this.#controller;
    const { clock, backoff, persistent: ref } = this.#options;
    try {
      await pRetry(() => this.#startOnce(), {
        retries: Infinity,
        // p-retry sleeps by the machine's clock and without chance at its limit, so the waiting is done here.
        minTimeout: 0,
        signal,
        onFailedAttempt: async ({ error }) => {
          this.#degrade(error);
          onAttempted();
          await sleep(clock, backoff.next(), { signal, ref });
        },
      });
    } catch {
      return; // Closed.
    }
    backoff.reset();
    this.#recover();
    onAttempted();
  }

  async #startOnce(): Promise<void> {
    const {
      path,
      watcherFactory = resilientWatcher(this.#options),
      clock,
      startTimeoutMs,
      onText,
    } = this.#options;
    let watcher: TokenWatcher | undefined;
    try {
      const started = (watcher = watcherFactory(path));
      // Before a later attempt the file may have changed unseen, so only the first one finds what was there.
      let initial = !this.#attempted;
      this.#attempted = true;
      started.on('change', ({ current }) => {
        const text = current.content && Buffer.from(current.content).toString('utf8').trim();
        // Whoever reports a change has got over the error it reported before.
        if (this.#degraded === 'error') this.#recover();
        if (!text || text === this.#text || this.#controller.signal.aborted) return;
        this.#text = text;
        onText(text, initial);
      });
      started.on('degraded', (detail) => this.#degrade(reasonOf(detail)));
      started.on('error', (detail) => this.#degrade(reasonOf(detail), 'error'));
      started.on('unreadable', (detail) => this.#degrade(reasonOf(detail), 'error'));
      started.on('readable', () => {
        if (this.#degraded === 'error') this.#recover();
      });
      started.on('recovered', () => this.#recover());
      started.on('close', () => this.#ended(started));
      await withDeadline(() => started.start(), {
        clock,
        timeoutMs: startTimeoutMs,
        signal: this.#controller.signal,
        late: () => new Error(`it did not start within ${startTimeoutMs} ms`),
      });
      initial = false;
      this.#watcher = started;
    } catch (cause) {
      await quietly(watcher);
      const reason = reasonOf(cause);
      // p-retry gives up on a TypeError.
      throw new TokenError('ERR_TOKEN_FILE', `Cannot watch ${path}: ${reason.message}`, { cause: reason });
    }
  }

  #ended(watcher: TokenWatcher): void {
    if (watcher !== this.#watcher || this.#controller.signal.aborted) return;
    this.#watcher = undefined;
    this.#degrade(new TokenError('ERR_TOKEN_FILE', `The watcher of ${this.#options.path} ended by itself`));
    this.#work = this.#keepStarting();
  }

  #degrade(error: Error, how: 'down' | 'error' = 'down'): void {
    if (this.#degraded || this.#controller.signal.aborted) return;
    this.#degraded = how;
    this.#options.onDegraded(error);
  }

  #recover(): void {
    if (!this.#degraded || this.#controller.signal.aborted) return;
    this.#degraded = undefined;
    this.#options.onRecovered();
  }
}

/** An error, whether it came as such or as the `cause` of an event. */
function reasonOf(detail: unknown): Error {
  if (detail instanceof Error) return detail;
  const inner = typeof detail === 'object' && detail !== null ? Object.values(detail) : [];
  return inner.find((value): value is Error => value instanceof Error) ?? new Error('no reason was given');
}

/** Closes a watcher that may be broken. */
async function quietly(watcher: TokenWatcher | undefined): Promise<void> {
  try {
    await watcher?.close();
  } catch {
    // What cannot be closed was not open.
  }
}

function resilientWatcher(options: TokenWatchOptions): TokenWatcherFactory {
  const { clock, fs, random, persistent } = options;
  return (path) => new ResilientWatcher(path, { clock, fs, random, persistent });
}
