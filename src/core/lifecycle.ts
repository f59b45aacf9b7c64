/**
 * The start and the end of a component.
 *
 * | state      | `start()`            | `open()` succeeds     | fails                | `close()`, the signal aborts |
 * |------------|----------------------|-----------------------|----------------------|------------------------------|
 * | `idle`     | → `starting`, opens  | –                     | –                    | → `closed`                   |
 * | `starting` | same promise         | → `running`, runs     | → `idle`, rejects    | → `closed`, ends             |
 * | `running`  | same promise         | –                     | the same, of `run()` | → `closed`, ends             |
 * | `closed`   | rejects              | –                     | –                    | same promise                 |
 *
 * Whoever waits for `start()` is rejected when the component is closed, without waiting for `open()` or `run()`. The
 * signal is listened to only between start and end; before the start its state is merely read.
 */
import { onAbort } from './abort.js';
import { Scope } from './scope.js';

/** Where a component is between its construction and its end. */
export type LifecycleState = 'idle' | 'starting' | 'running' | 'closed';

/** What a component does when it is started and closed. */
interface LifecycleOptions<T> {
  /** Closes the component when it aborts; listened to only between start and end. */
  readonly signal: AbortSignal | undefined;
  /**
   * Acquires what the component needs. When this rejects, nothing may be left of it. When it succeeds after the
   * end, it has to release itself what it acquired.
   */
  readonly open: () => Promise<unknown>;
  /**
   * Begins the work, now that the component is running. `start()` resolves to its result. When this rejects, nothing may
   * be left of it or of what `open()` acquired: another start opens again.
   */
  readonly run: () => T | Promise<T>;
  /** Releases everything. Called once, synchronously, when the scope has just ended; must not reject. */
  readonly end: () => unknown;
  /** Creates the error for calls after the end. */
  readonly over: () => Error;
}

/** The table at the head of this file. */
export class Lifecycle<T = void> {
  /** Ends when the component is closed, before `end()`. */
  readonly scope = new Scope();
  readonly #options: LifecycleOptions<T>;
  #state: LifecycleState = 'idle';
  #unlisten = (): void => undefined;
  #started: Promise<T> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: LifecycleOptions<T>) {
    this.#options = options;
  }

  get state(): LifecycleState {
    return this.#options.signal?.aborted ? 'closed' : this.#state;
  }

  /** Resolves when the component runs; the same promise for all who ask, until that fails. */
  start(): Promise<T> {
    if (this.#options.signal?.aborted) void this.close();
    if (this.state === 'closed') return Promise.reject(this.#options.over());
    if (this.#started) return this.#started;
    let follow!: (start: Promise<T>) => void;
    // Set before `open()`, which may call `start()`, too.
    const started = (this.#started = new Promise((resolve) => (follow = resolve)));
    follow(this.#start());
    return started;
  }

  /** Ends it. Resolves when nothing is left, and never rejects; the same promise for all who ask. */
  close(): Promise<void> {
    if (!this.#closed) {
      let follow!: (end: Promise<void>) => void;
      // Set before anybody learns of the end, since they may call `close()`, too.
      this.#closed = new Promise((resolve) => (follow = resolve));
      follow(this.#end());
    }
    return this.#closed;
  }

  throwIfClosed(): void {
    if (this.state === 'closed') throw this.#options.over();
  }

  async #start(): Promise<T> {
    const { signal, open, run } = this.#options;
    this.#state = 'starting';
    this.#unlisten = onAbort(signal, () => void this.close());
    try {
      await this.scope.untilEnd(open());
      this.throwIfClosed();
      this.#state = 'running';
      const result = await this.scope.untilEnd(run());
      this.throwIfClosed();
      return result;
    } catch (error) {
      this.throwIfClosed();
      this.#state = 'idle';
      this.#started = undefined;
      this.#unlisten();
      throw error;
    }
  }

  async #end(): Promise<void> {
    const { end, over } = this.#options;
    this.#state = 'closed';
    this.#unlisten();
    await Promise.all([this.scope.end(over()), end()]);
  }
}
