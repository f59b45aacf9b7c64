/** What every long-lived object of the library is: it starts, emits, tells its status and closes in the same way. */
import { inspect } from 'node:util';

import type { EventEmitter } from 'eventemitter3';

import type { Clock } from './clock.js';
import { Emitter } from './emitter.js';
import { ClosedError, errorCodeOf } from './errors.js';
import { redactError, ResilientError } from './resilient-error.js';
import { Lifecycle, type LifecycleState } from './lifecycle.js';
import type { Scope } from './scope.js';
import {
  isObserved,
  publishPoint,
  trace,
  type ComponentHandle,
  type OperationMessages,
  type OperationName,
} from './telemetry.js';

/** The last failure, as plain data. */
export interface LastError {
  readonly name: string;
  /** The error's stable code; null where it has none. */
  readonly code: string | null;
  readonly message: string;
  /** Epoch ms. */
  readonly at: number;
}

/** A failure as plain data. */
export function lastErrorOf(error: Error, at: number): LastError {
  const { name, message } = error;
  return { name, code: errorCodeOf(error), message, at };
}

/** What the status of every component has. Plain data, safe to serialize: no contents, tokens or secrets. */
export interface ComponentStatus {
  /** The `name` option, or what the component is called without one. */
  readonly name: string;
  readonly state: string;
  readonly lastError: LastError | null;
}

/** Events that every component has. */
export interface ComponentEvents {
  /** A listener failed (`ListenerError`), or something that will not heal by itself. Unheard, a process warning. */
  error: [error: Error];
}

/** What a component is made with. */
export interface ComponentOptions {
  /** What it is called in its status and telemetry. */
  readonly name: string;
  /** Its class, as telemetry and health checks know it: the name of the constructor may be changed by a minifier. */
  readonly kind: string;
  /** Completes "Cannot … : …" for calls after `close()`, as in "watch "/etc/policy"". */
  readonly purpose: string;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
}

/**
 * The one base of `ResilientWatcher`, `TokenFile`, `TokenRefresher`, `ConfigLoader`, `VolumePublisher` and
 * `AtomicVolume`. A subclass says what happens at its start and its end, and emits with `dispatch()`.
 */
export abstract class Component<
  Events extends ComponentEvents,
  Status extends ComponentStatus,
> extends Emitter<Events> {
  /** What it is called in its status and telemetry. */
  readonly name: string;
  readonly #clock: Clock;
  readonly #lifecycle: Lifecycle;
  /** How telemetry knows it: by this nothing but its name and status can be had. */
  readonly #handle: ComponentHandle;
  #lastError: LastError | null = null;

  protected constructor({ name, kind, purpose, signal, clock }: ComponentOptions) {
    super();
    this.name = name;
    this.#clock = clock;
    this.#handle = { kind, name, status: () => this.status() };
    this.#lifecycle = new Lifecycle({
      signal,
      open: () => this.onStart(),
      run: () => {
        publishPoint(this.#handle, 'start');
        return this.onRunning();
      },
      end: () => {
        publishPoint(this.#handle, 'close');
        return this.onClose();
      },
      over: () =>
        signal?.aborted ? (signal.reason as Error) : new ClosedError(`Cannot ${purpose}: it was closed`),
    });
  }

  /** Its class, as telemetry shows it. */
  get kind(): string {
    return this.#handle.kind;
  }

  /** How it is doing. Plain data without contents, tokens or secrets. */
  abstract status(): Status;

  /** The `state` of its status. */
  get state(): Status['state'] {
    return this.#lifecycle.state;
  }

  /**
   * Starts it. A second call returns the same promise; after a failure it can be called again.
   * @throws {ClosedError} (rejects) after or during `close()`; the signal's reason when that has aborted.
   */
  start(): Promise<void> {
    return this.#lifecycle.start();
  }

  /**
   * Ends it. When it resolves, no timer, handle or listener is left and no more events are emitted. May be called
   * more than once, before `start()` and from within a listener. Never rejects.
   */
  close(): Promise<void> {
    return this.#lifecycle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Its status, so that `JSON.stringify` and structured loggers can take it. */
  toJSON(): Status {
    return this.status();
  }

  [inspect.custom](): string {
    return `${this.constructor.name} ${inspect(this.status())}`;
  }

  /** Calls the listeners, and publishes the event on its diagnostics channel if it has one. */
  override emit<E extends EventEmitter.EventNames<Events>>(
    event: E,
    ...args: EventEmitter.EventArgs<Events, E>
  ): boolean {
    const name = event as string;
    if (isObserved(name)) {
      publishPoint(this.#handle, name, this.telemetryOf(name, (args as readonly object[])[0]));
    }
    return super.emit(event, ...args);
  }

  /** Acquires what it needs; see `Lifecycle`. */
  protected onStart(): Promise<unknown> {
    return Promise.resolve();
  }

  /** Begins its work; `start()` waits for it. */
  protected onRunning(): void | Promise<void> {}

  /** Releases everything; must not reject. */
  protected onClose(): unknown {
    return undefined;
  }

  /** Ends when it is closed. */
  protected get scope(): Scope {
    return this.#lifecycle.scope;
  }

  /** Where it is between construction and end; `state` may say more. */
  protected get lifecycleState(): LifecycleState {
    return this.#lifecycle.state;
  }

  protected get lastError(): LastError | null {
    return this.#lastError;
  }

  /** @throws {ClosedError} once closed; the signal's reason when that has aborted. */
  protected throwIfClosed(): void {
    this.#lifecycle.throwIfClosed();
  }

  /** Emits an event, unless it is closed: a step that began before the end may come too late. */
  protected dispatch<E extends keyof Events & string>(event: E, ...args: Events[E] & unknown[]): void {
    if (this.#lifecycle.state === 'closed') return;
    (this.emit as (event: E, ...args: unknown[]) => boolean).call(this, event, ...args);
  }

  /** What a message about this event is made of: its payload, or that and what only telemetry wants to know. */
  protected telemetryOf(_event: string, payload: object | undefined): object | undefined {
    return payload;
  }

  /** Does the work as an operation of this component that telemetry can follow; see `trace`. */
  protected trace<N extends OperationName, T>(
    name: N,
    details: Omit<OperationMessages[N], 'component'>,
    work: () => Promise<T>,
    resultOf: (value: T) => string,
  ): Promise<T> {
    const message = { component: this.#handle, ...details } as unknown as OperationMessages[N];
    return trace(name, message, work, resultOf);
  }

  /** Remembers a failure for the status. */
  protected recordError(error: Error): void {
    this.#lastError = lastErrorOf(error, this.#clock.now());
  }

  /** Remembers a failure and emits it as `error`. */
  protected fail(thrown: unknown): void {
    const error = thrown instanceof ResilientError ? thrown : redactError(thrown, this.secrets);
    this.recordError(error);
    (this.dispatch as (event: 'error', error: Error) => void).call(this, 'error', error);
  }
}
