/**
 * The start and the end of every component, which is an emitter of events.
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
import { EventEmitter } from 'eventemitter3';

import { ClosedError } from '../errors/errors.js';
import { onAbort } from '../scheduling/abort.js';
import { holdProcess } from '../scheduling/event-loop.js';
import { begin } from '../scheduling/outcome.js';
import { Lifetime } from './lifetime.js';

/** Where a component is between its construction and its end. */
export type LifecycleState = 'idle' | 'starting' | 'running' | 'closed';

/** Starts a component. If that fails, closes it and rejects. */
export async function startOrClose<C extends Pick<Lifecycle<object>, 'start' | 'close'>>(
  component: C,
): Promise<C> {
  try {
    await component.start();
  } catch (error) {
    await component.close();
    throw error;
  }
  return component;
}

/** A subclass says what happens at its start and at its end. */
export abstract class Lifecycle<Events extends object> extends EventEmitter<Events> {
  /** Ends when the component is closed, before `onClose()`. */
  protected readonly lifetime = new Lifetime();
  /** Closes the component when it aborts; listened to only between start and end. */
  readonly #signal: AbortSignal | undefined;
  #state: LifecycleState = 'idle';
  #unlisten: (() => void) | undefined;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  protected constructor(signal: AbortSignal | undefined) {
    super();
    this.#signal = signal;
  }

  /**
   * Starts the component. A second call returns the same promise; after a failure it can be called again. Until it
   * settles, it keeps the process alive.
   * @throws {ClosedError} (rejects) after or during `close()`; the signal's reason when that has aborted.
   */
  start(): Promise<void> {
    if (this.#signal?.aborted) void this.close();
    if (this.lifecycleState === 'closed') return Promise.reject(this.#reasonOfEnd);
    if (this.#started) return this.#started;
    return begin(
      (started) => (this.#started = started),
      () => this.#start(),
    );
  }

  /**
   * Closes the component. When the promise resolves, no timer, handle or listener is left, and no more events are
   * emitted. May be called more than once, before `start()` and from within a listener. Never rejects.
   */
  close(): Promise<void> {
    return (
      this.#closed ??
      begin(
        (closed) => (this.#closed = closed),
        () => this.#end(),
      )
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The state of the lifecycle; `state` may be more specific. */
  protected get lifecycleState(): LifecycleState {
    return this.#signal?.aborted ? 'closed' : this.#state;
  }

  /** @throws {ClosedError} once closed; the signal's reason when that has aborted. */
  protected throwIfClosed(): void {
    if (this.lifecycleState === 'closed') throw this.#reasonOfEnd;
  }

  /** Completes "Cannot …" for calls after `close()`, for example `watch "/etc/policy"`. */
  protected abstract get purpose(): string;

  /** Acquires resources. If it rejects, or succeeds after the end, it must release them itself. */
  protected onStart(): Promise<unknown> {
    return Promise.resolve();
  }

  /**
   * Begins the work; `start()` waits for it. If it rejects, it must have released everything, including the resources
   * of `onStart()`, which the next start acquires again.
   */
  protected onRunning(): void | Promise<void> {}

  /** Releases everything. Called once, synchronously, right after the lifetime has ended; must not reject. */
  protected onClose(): unknown {
    return undefined;
  }

  /** Called when the component is running, and when it no longer is. */
  protected abstract announce(phase: 'start' | 'close'): void;

  get #reasonOfEnd(): Error {
    if (this.#signal?.aborted) return this.#signal.reason as Error;
    return new ClosedError(`Cannot ${this.purpose}: it was closed`);
  }

  async #start(): Promise<void> {
    this.#state = 'starting';
    const release = holdProcess();
    this.#unlisten = onAbort(this.#signal, () => void this.close());
    try {
      await this.lifetime.untilEnd(this.onStart());
      this.throwIfClosed();
      this.#state = 'running';
      this.announce('start');
      await this.lifetime.untilEnd(this.onRunning());
      this.throwIfClosed();
    } catch (error) {
      this.throwIfClosed();
      if (this.#state === 'running') this.announce('close');
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
    this.announce('close');
    await Promise.all([released, this.onClose()]);
  }
}
