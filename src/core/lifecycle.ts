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
 * When the component is closed, a pending `start()` rejects without waiting for `open()` or `run()`. A listener is added
 * to the signal only between start and end; before the start only its state is read.
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
   * Acquires resources. If it rejects, it must have released them. If it succeeds after the end, it must release them
   * itself.
   */
  readonly open: () => Promise<unknown>;
  /**
   * Begins the work once the component is running. `start()` resolves to its result. If it rejects, it must have released
   * everything, including what `open()` acquired: another start opens again.
   */
  readonly run: () => T | Promise<T>;
  /** Releases everything. Called once, synchronously, right after the scope has ended; must not reject. */
  readonly end: () => unknown;
  /** Creates the error for calls after the end. */
  readonly over: () => Error;
}

/** The state machine in the table at the top of this file. */
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

  /** Resolves when the component is running. Returns the same promise to all callers until it rejects. */
  start(): Promise<T> {
    if (this.#options.signal?.aborted) void this.close();
    if (this.state === 'closed') return Promise.reject(this.#options.over());
    if (this.#started) return this.#started;
    let follow!: (start: Promise<T>) => void;
    // Set before `open()` runs, since it may call `start()` itself.
    const started = (this.#started = new Promise((resolve) => (follow = resolve)));
    follow(this.#start());
    return started;
  }

  /** Resolves when everything is released; never rejects. Returns the same promise to all callers. */
  close(): Promise<void> {
    if (!this.#closed) {
      let follow!: (end: Promise<void>) => void;
      // Set before the end is announced, since listeners may call `close()` themselves.
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
