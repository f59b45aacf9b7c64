/**
 * The base of every long-lived class, in which state, status, events and telemetry work the same way.
 */

import type { EventEmitter } from 'eventemitter3';

import { inspect } from '../ports/builtins.js';
import type { Clock } from '../ports/clock.js';
import { errorCodeOf, ListenerError } from '../errors/errors.js';
import { redactError, ResilientError } from '../errors/resilient-error.js';
import { Lifecycle } from './lifecycle.js';
import { ListenerGuards, listenerOf, warnOf } from './listener-guards.js';
import type { StatusDescription, Verdict } from '../telemetry/status-description.js';
import type { ComponentHandle } from '../telemetry/telemetry-messages.js';
import { defineTelemetry } from '../telemetry/telemetry-definitions.js';
import type { PointName } from '../telemetry/telemetry-points.js';
import {
  addRunning,
  isObserved,
  operationChannel,
  publishPoint,
  trace,
  type DetailsOf,
  type MessageOf,
} from '../telemetry/telemetry.js';
import { UnheardEvents } from './unheard.js';

/** The last failure, as plain data. */
export interface LastError {
  readonly name: string;
  /** The error's stable code; null if it has none. */
  readonly code: string | null;
  readonly message: string;
  /** Epoch ms. */
  readonly at: number;
}

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
   * process warning, unless `logTo` or `observe` tells all of it.
   */
  error: [error: Error];
}

interface ComponentOptions<Status> {
  /** The name in its status and in telemetry. */
  readonly name: string;
  /** The name of the class for telemetry and health checks; unlike `constructor.name` it survives minifiers. */
  readonly kind: string;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  /** What health checks and metrics say about its status. */
  readonly description?: StatusDescription<Status> | undefined;
}

type PayloadOf<Args> = Args extends [infer Payload] ? Payload : never;
type Names<Events extends object> = EventEmitter.EventNames<Events>;
type ListenerFor<Events extends object, E extends Names<Events>> = EventEmitter.EventListener<Events, E>;

/** A component without the types of its events. */
interface Untyped {
  emit(event: string, ...args: readonly unknown[]): boolean;
}

const repeatedBy = new WeakMap<object, readonly PointName[]>();

/**
 * Makes a component a part of another one, which reports these events as its own: they are logged and counted once, as
 * are the start and the end.
 * @param reported the listener of each event that the other one reports.
 */
export function asPart<Events extends ComponentEvents>(
  part: EventEmitter<Events>,
  reported: {
    readonly [E in PointName & keyof Events]?: (payload: PayloadOf<Events[E]>) => unknown;
  },
): void {
  const names = Object.keys(reported) as (PointName & keyof Events)[];
  repeatedBy.set(part, ['start', 'close', ...names]);
  for (const name of names)
    part.on(name as Names<Events>, reported[name] as ListenerFor<Events, Names<Events>>);
}

/**
 * The base of `ResilientWatcher`, `TokenFile`, `TokenRefresher`, `ConfigLoader`, `TlsFiles`, `VolumePublisher`,
 * `AtomicVolume` and the other long-lived classes. A subclass overrides what happens at its start and its end, and
 * emits with `dispatch()`.
 *
 * Its events are those of `eventemitter3`, but listeners cannot affect the component or each other. When a listener
 * throws or rejects, a `ListenerError` is emitted on `error`; without a listener of `error`, it becomes a process
 * warning. So do every other `error`, and the first event of each name that says what does not work (`unreadable`,
 * `rejected`, `reverted`, `warning`, `retry`, `undelivered`, `failed`, `expired`), unless a listener, `logTo` or
 * `observe` hears it.
 */
export abstract class Component<
  Events extends ComponentEvents,
  Status extends ComponentStatus,
> extends Lifecycle<Events> {
  // These methods do not exist. With the declarations, TypeScript accepts a component where a function of Node.js takes
  // an emitter, such as `once()` and `on()` of `node:events`, which call none of them.
  /** @internal */
  declare readonly setMaxListeners: never;
  /** @internal */
  declare readonly getMaxListeners: never;
  /** @internal */
  declare readonly rawListeners: never;
  /** @internal */
  declare readonly prependListener: never;
  /** @internal */
  declare readonly prependOnceListener: never;

  /** The name in its status and in telemetry. */
  readonly name: string;
  /** The name of its class in telemetry. */
  readonly kind: string;
  readonly #clock: Clock;
  readonly #description: StatusDescription<Status>;
  readonly #guards = new ListenerGuards((event, thrown) => this.#listenerFailed(event, thrown));
  /**
   * What telemetry sees: the name, the status and what it means, nothing else. Created when the component starts or
   * publishes.
   */
  #handle: ComponentHandle | undefined;
  #removeRunning: (() => void) | undefined;
  #lastError: LastError | null = null;
  readonly #unheard = new UnheardEvents();

  protected constructor({ name, kind, signal, clock, description = {} }: ComponentOptions<Status>) {
    super(signal);
    this.name = name;
    this.kind = kind;
    this.#clock = clock;
    this.#description = description;
    if (description.telemetry) defineTelemetry(kind, description.telemetry);
  }

  /** The current status. Plain data without contents, tokens or secrets. */
  abstract status(): Status;

  /** The same as `status().state`. */
  get state(): Status['state'] {
    return this.lifecycleState;
  }

  /** Why it is not live or not ready; empty if it is both. See `healthOf`. */
  health(): Verdict {
    const status = this.status();
    const { state, lastError } = status;
    const { worksIdle = false, health } = this.#description;
    if (state === 'closed') return { unready: 'it is closed' };
    // A start that has failed leaves it idle.
    if (state === 'idle' && !worksIdle) {
      return { unready: lastError ? `it is not running: ${lastError.message}` : 'it is idle' };
    }
    return health?.(status) ?? {};
  }

  /** The status, for `JSON.stringify` and structured loggers. */
  toJSON(): Status {
    return this.status();
  }

  [inspect.custom](): string {
    return `${this.constructor.name} ${inspect(this.status())}`;
  }

  override on<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.on(event, this.#guards.of(event, fn), context);
  }

  override once<E extends Names<Events>>(event: E, fn: ListenerFor<Events, E>, context?: unknown): this {
    return super.once(event, this.#guards.of(event, fn), context);
  }

  override off<E extends Names<Events>>(
    event: E,
    fn?: ListenerFor<Events, E>,
    context?: unknown,
    once?: boolean,
  ): this {
    return super.off(event, fn && this.#guards.of(event, fn), context, once);
  }

  override listeners<E extends Names<Events>>(event: E): ListenerFor<Events, E>[] {
    return super.listeners(event).map(listenerOf);
  }

  /** Calls the listeners, and publishes the event on its diagnostics channel if it has one. */
  override emit<E extends Names<Events>>(event: E, ...args: EventEmitter.EventArgs<Events, E>): boolean {
    const name = event as string;
    const [payload] = args as readonly unknown[];
    if (isObserved(name)) this.#publish(name, this.telemetryOf(name, Object(payload) as object));
    const isHeard = super.emit(event, ...args);
    if (!isHeard) this.#unheard.emitted(this, name, payload);
    return isHeard;
  }

  /** The secrets to remove from the error of a listener that failed. */
  protected get secrets(): readonly string[] {
    return [];
  }

  protected override announce(phase: 'start' | 'close'): void {
    this.#removeRunning?.();
    this.#removeRunning = phase === 'start' ? addRunning(this.#telemetryHandle) : undefined;
    if (isObserved(phase)) this.#publish(phase);
  }

  protected get lastError(): LastError | null {
    return this.#lastError;
  }

  /** Emits an event, unless the component is closed: work that began before the end may finish later. */
  protected dispatch<E extends keyof Events & string>(event: E, ...args: Events[E] & unknown[]): void {
    this.tell(event, ...args);
  }

  /** `dispatch()` for an event that every subclass has, whatever others `Events` has. */
  protected tell(event: string, ...args: readonly unknown[]): void {
    if (this.lifecycleState !== 'closed') (this as Untyped).emit(event, ...args);
  }

  /** The object from which the telemetry message of an event is built; by default the payload. */
  protected telemetryOf(_event: string, payload: object | undefined): object | undefined {
    return payload;
  }

  /** Runs the work as a traced operation of this component; see `trace`. */
  protected trace<N extends string, T>(
    name: N,
    details: DetailsOf<N>,
    work: () => Promise<T>,
    resultOf: (value: T) => string,
  ): Promise<T> {
    if (!operationChannel(name).hasSubscribers) return work();
    const message = { component: this.#telemetryHandle, ...details } as unknown as MessageOf<N>;
    return trace(name, message, work, resultOf);
  }

  /** Remembers a failure for the status. */
  protected recordError(error: Error): void {
    this.#lastError = lastErrorOf(error, this.#clock.now());
  }

  /** Forgets a failure that is over, unless another one came after it. @param rest what is still wrong */
  protected forgetError(over: LastError | null, rest: LastError | null = null): void {
    if (this.#lastError === over) this.#lastError = rest;
  }

  /** Remembers a failure and emits it as `error`. */
  protected fail(thrown: unknown): void {
    const error = thrown instanceof ResilientError ? thrown : redactError(thrown, this.secrets);
    this.recordError(error);
    this.tell('error', error);
  }

  #listenerFailed(event: PropertyKey, thrown: unknown): void {
    const error = new ListenerError(String(event), thrown, this.secrets);
    // A failing listener of `error` must not receive its own failure: that would never end.
    if (event === 'error') warnOf(error);
    else (this as Untyped).emit('error', error);
  }

  #publish(event: string, payload?: object): void {
    publishPoint(this.#telemetryHandle, event, payload);
  }

  get #telemetryHandle(): ComponentHandle {
    const { kind, name } = this;
    const repeated = repeatedBy.get(this);
    const { metrics } = this.#description;
    this.#handle ??= {
      kind,
      name,
      ...(repeated && { repeated }),
      status: () => this.status(),
      health: () => this.health(),
      ...(metrics && { metrics: () => metrics(this.status()) }),
    };
    return this.#handle;
  }
}

// Aliases, as in eventemitter3.
/* eslint-disable @typescript-eslint/unbound-method -- they stay methods */
Component.prototype.addListener = Component.prototype.on;
Component.prototype.removeListener = Component.prototype.off;
