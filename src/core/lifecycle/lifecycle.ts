/**
 * The start and the end of every component.
 *
 * | state      | `start()`              | `onStart()` succeeds | it fails          | `close()`, the signal aborts |
 * |------------|------------------------|----------------------|-------------------|------------------------------|
 * | `idle`     | → `starting`, acquires | –                    | –                 | → `closed`                   |
 * | `starting` | same promise           | → `running`, works   | → `idle`, rejects | → `closed`, releases         |
 * | `running`  | same promise           | –                    | → `idle`, rejects | → `closed`, releases         |
 * | `closed`   | rejects                | –                    | –                 | same promise                 |
 *
 * If `onRunning()` fails, `start()` rejects, too. When the component is closed, a pending `start()` rejects at once. A
 * listener is added to the signal only between start and end; before the start, only its state is read.
 */
import { onAbort } from '../scheduling/abort.js';
import { holdProcess } from '../scheduling/event-loop.js';
import { begin } from '../scheduling/outcome.js';
import { Lifetime } from './lifetime.js';

/** Where a component is between its construction and its end. */
export type LifecycleState = 'idle' | 'starting' | 'running' | 'closed';

/** Starts a component. If that fails, closes it and rejects. */
export async function startOrClose<C extends Pick<Lifecycle, 'start' | 'close'>>(component: C): Promise<C> {
  try {
    await component.start();
  } catch (error) {
    await component.close();
    throw error;
  }
  return component;
}

export interface LifecycleHooks {
  /** Acquires resources. If it rejects, or succeeds after the end, it must release them itself. */
  onStart(): Promise<unknown>;
  /**
   * Begins the work; `start()` waits for it. If it rejects, it must have released everything, including the resources
   * of `onStart()`, which the next start acquires again.
   */
  onRunning(): void | Promise<void>;
  /** Releases everything. Called once, synchronously, right after the lifetime has ended; must not reject. */
  onClose(): unknown;
  /** Called when the component is running, and when it no longer is. */
  announce(phase: 'start' | 'close'): void;
  closedError(): Error;
}

export class Lifecycle {
  /** Ends when the component is closed, before `onClose()`. */
  readonly lifetime = new Lifetime();
  /** Closes the component when it aborts; listened to only between start and end. */
  readonly #signal: AbortSignal | undefined;
  readonly #hooks: LifecycleHooks;
  #state: LifecycleState = 'idle';
  #unlisten: (() => void) | undefined;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(signal: AbortSignal | undefined, hooks: LifecycleHooks) {
    this.#signal = signal;
    this.#hooks = hooks;
  }

  start(): Promise<void> {
    if (this.#signal?.aborted) void this.close();
    if (this.state === 'closed') return Promise.reject(this.#reasonOfEnd);
    if (this.#started) return this.#started;
    return begin(
      (started) => (this.#started = started),
      () => this.#start(),
    );
  }

  close(): Promise<void> {
    return (
      this.#closed ??
      begin(
        (closed) => (this.#closed = closed),
        () => this.#end(),
      )
    );
  }

  get state(): LifecycleState {
    return this.#signal?.aborted ? 'closed' : this.#state;
  }

  /** @throws {ClosedError} once closed; the signal's reason when that has aborted. */
  throwIfClosed(): void {
    if (this.state === 'closed') throw this.#reasonOfEnd;
  }

  get #reasonOfEnd(): Error {
    return this.#signal?.aborted ? (this.#signal.reason as Error) : this.#hooks.closedError();
  }

  async #start(): Promise<void> {
    this.#state = 'starting';
    const release = holdProcess();
    this.#unlisten = onAbort(this.#signal, () => void this.close());
    try {
      await this.lifetime.untilEnd(this.#hooks.onStart());
      this.throwIfClosed();
      this.#state = 'running';
      this.#hooks.announce('start');
      await this.lifetime.untilEnd(this.#hooks.onRunning());
      this.throwIfClosed();
    } catch (error) {
      this.throwIfClosed();
      if (this.#state === 'running') this.#hooks.announce('close');
      this.#state = 'idle';
      this.#started = undefined;
      this.#unlisten();
      throw error;
    } finally {
      release();
    }
  }

  async #end(): Promise<void> {
    this.#state = 'closed';
    this.#unlisten?.();
    const released = this.lifetime.end(this.#reasonOfEnd);
    this.#hooks.announce('close');
    await Promise.all([released, this.#hooks.onClose()]);
  }
}
