import type { Clock } from 'resilient-watcher';
import { ApiFailure, withDeadline } from 'resilient-watcher/internal';

/** One line of a watch. */
interface WatchEvent {
  /** `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`. */
  readonly type: string;
  readonly object: unknown;
}

/** A watch said nothing for so long that it is broken. */
export class SilentWatch extends Error {}

/** The API server measures the time of a watch by its own clock, and ends it this much early or late, ms. */
const EARLY_MS = 1_000;
const LATE_MS = 10_000;

/** One watch: its events, each of which has to come in time. */
export class WatchStream {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #ended = new AbortController();
  readonly #lines: AsyncIterator<string>;
  readonly #beganAt: number;
  readonly #endsAt: number;

  /**
   * @param open begins the watch; the signal ends it.
   * @param seconds after which the API server ends it.
   */
  constructor(
    open: (signal: AbortSignal) => AsyncIterable<string>,
    { clock, signal, seconds }: { clock: Clock; signal: AbortSignal; seconds: number },
  ) {
    this.#clock = clock;
    this.#signal = signal;
    this.#beganAt = clock.monotonic();
    this.#endsAt = this.#beganAt + seconds * 1_000;
    this.#lines = open(this.#ended.signal)[Symbol.asyncIterator]();
  }

  /** How long it has lasted, ms. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#beganAt;
  }

  /** Whether it was to end by now. */
  get isOver(): boolean {
    return this.#clock.monotonic() >= this.#endsAt - EARLY_MS;
  }

  /**
   * The next event; undefined: the watch has ended. Empty lines are silence.
   * @throws {SilentWatch} after `silenceMs`.
   * @throws {ApiFailure} for what is not an event, and for the event of a failure, such as 410 Gone.
   */
  async next(silenceMs: number): Promise<WatchEvent | undefined> {
    const restMs = this.#endsAt + LATE_MS - this.#clock.monotonic();
    if (restMs <= 0) return undefined;
    try {
      const line = await withDeadline(() => this.#line(), {
        clock: this.#clock,
        signal: this.#signal,
        timeoutMs: Math.min(silenceMs, restMs),
        late: () => new SilentWatch(`the watch sent nothing for ${silenceMs / 1_000} s`),
      });
      return line === undefined ? undefined : eventOf(line);
    } catch (error) {
      // A server that does not end it.
      if (error instanceof SilentWatch && restMs <= silenceMs) return undefined;
      throw error;
    }
  }

  /** Ends it, and does not wait for a client that ignores its signal. */
  close(): void {
    this.#ended.abort();
    this.#lines.return?.().catch(() => {});
  }

  async #line(): Promise<string | undefined> {
    for (;;) {
      const next = await this.#lines.next();
      if (next.done === true) return undefined;
      if (next.value.trim() !== '') return next.value;
    }
  }
}

function eventOf(line: string): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw new ApiFailure(200, 'the watch sent a line that is not JSON');
  }
  const { type, object } = Object(event) as { type?: unknown; object?: unknown };
  if (type === 'ERROR') {
    const { code, message } = Object(object) as { code?: unknown; message?: unknown };
    throw new ApiFailure(
      typeof code === 'number' ? code : 500,
      typeof message === 'string' ? message : 'the watch failed',
      { body: object },
    );
  }
  if (typeof type !== 'string' || typeof object !== 'object' || object === null)
    throw new ApiFailure(200, 'the watch sent something that is not an event');
  return { type, object };
}
