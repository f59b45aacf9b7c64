/**
 * The base of every long-lived class, in which start, close, state, status, events and telemetry work the same way.
 */
import { inspect } from 'node:util';

import type { EventEmitter } from 'eventemitter3';

import type { Clock } from './clock.js';
import { ClosedError, errorCodeOf } from './errors.js';
import { redactError, ResilientError } from './resilient-error.js';
import { Lifecycle } from './lifecycle.js';
import type { ComponentHandle, OperationMessages, OperationName, PointName } from './telemetry-messages.js';
import { addRunning, isObserved, operationChannel, publishPoint, trace } from './telemetry.js';

/** The last failure, as plain data. */
export interface LastError {
  readonly name: string;
  /** The error's stable code; null if it has none. */
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

/** The fields that every status has. Plain data, safe to serialize: no contents, tokens or secrets. */
export interface ComponentStatus {
  /** The `name` option, or a default that describes the component. */
  readonly name: string;
  readonly state: string;
  readonly lastError: LastError | null;
}

/** Events that every component has. */
export interface ComponentEvents {
  /**
   * A listener failed (`ListenerError`), or a failure that does not recover by itself. Without a listener, it becomes a
   * process warning.
   */
  error: [error: Error];
}

/** The constructor's arguments. */
interface ComponentOptions {
  /** The name in its status and in telemetry. */
  readonly name: string;
  /** The name of the class for telemetry and health checks; unlike `constructor.name` it survives minifiers. */
  readonly kind: string;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
}

const repeatedBy = new WeakMap<object, readonly PointName[]>();

/**
 * Marks a component as part of another one that reports these `events` as its own, so that each event is logged and
 * counted once.
 * @returns the component.
 */
export function asPart<C extends object>(component: C, events: readonly PointName[]): C {
  repeatedBy.set(component, events);
  return component;
}

/**
 * The base of `ResilientWatcher`, `TokenFile`, `TokenRefresher`, `ConfigLoader`, `TlsFiles`, `VolumePublisher`,
 * `AtomicVolume` and the other long-lived classes. A subclass overrides what happens at its start and its end, and
 * emits with `dispatch()`.
 */
export abstract class Component<
  Events extends ComponentEvents,
  Status extends ComponentStatus,
> extends Lifecycle<Events> {
  /** The name in its status and in telemetry. */
  readonly name: string;
  /** The name of its class in telemetry. */
  readonly kind: string;
  readonly #clock: Clock;
  /** What telemetry sees: the name and the status, nothing else. Created when the component starts or publishes. */
  #handle: ComponentHandle | undefined;
  #removeRunning: (() => void) | undefined;
  #lastError: LastError | null = null;

  protected constructor({ name, kind, signal, clock }: ComponentOptions) {
    super(signal);
    this.name = name;
    this.kind = kind;
    this.#clock = clock;
  }

  /** The current status. Plain data without contents, tokens or secrets. */
  abstract status(): Status;

  /** The same as `status().state`. */
  get state(): Status['state'] {
    return this.lifecycleState;
  }

  /** The status, for `JSON.stringify` and structured loggers. */
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
    if (isObserved(name)) this.#publish(name, this.telemetryOf(name, (args as readonly object[])[0]));
    return super.emit(event, ...args);
  }

  /** Completes "Cannot …" for calls after `close()`, for example `watch "/etc/policy"`. */
  protected abstract get purpose(): string;

  protected override announce(phase: 'start' | 'close'): void {
    this.#removeRunning?.();
    this.#removeRunning = phase === 'start' ? addRunning(this.#telemetryHandle) : undefined;
    if (isObserved(phase)) this.#publish(phase);
  }

  protected override closedError(): Error {
    return new ClosedError(`Cannot ${this.purpose}: it was closed`);
  }

  protected get lastError(): LastError | null {
    return this.#lastError;
  }

  /** Emits an event, unless the component is closed: work that began before the end may finish later. */
  protected dispatch<E extends keyof Events & string>(event: E, ...args: Events[E] & unknown[]): void {
    if (this.lifecycleState === 'closed') return;
    (this.emit as (event: E, ...args: unknown[]) => boolean).call(this, event, ...args);
  }

  /** The object from which the telemetry message of an event is built; by default the payload. */
  protected telemetryOf(_event: string, payload: object | undefined): object | undefined {
    return payload;
  }

  /** Runs the work as a traced operation of this component; see `trace`. */
  protected trace<N extends OperationName, T>(
    name: N,
    details: Omit<OperationMessages[N], 'component'>,
    work: () => Promise<T>,
    resultOf: (value: T) => string,
  ): Promise<T> {
    if (!operationChannel(name).hasSubscribers) return work();
    const message = { component: this.#telemetryHandle, ...details } as unknown as OperationMessages[N];
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

  #publish(event: string, payload?: object): void {
    publishPoint(this.#telemetryHandle, event, payload);
  }

  get #telemetryHandle(): ComponentHandle {
    const { kind, name } = this;
    const repeated = repeatedBy.get(this);
    this.#handle ??= { kind, name, ...(repeated && { repeated }), status: () => this.status() };
    return this.#handle;
  }
}
