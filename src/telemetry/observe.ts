import { subscribe, unsubscribe } from 'node:diagnostics_channel';

import { systemClock } from '../core/ports/clock.js';
import { ListenerError } from '../core/errors/errors.js';
import { callback, optional, resolveOptions } from '../core/options/options.js';
import type { PointMessages } from '../core/telemetry/telemetry-messages.js';
import type { OperationMessages, OperationName } from '../core/telemetry/telemetry-operations.js';
import type { PointName } from '../core/telemetry/telemetry-points.js';
import { addObserver, followNames, operationChannel } from '../core/telemetry/telemetry.js';

/** Something that observes the library until it is closed. */
export interface Subscription extends Disposable {
  /** Stops observing. May be called more than once. */
  close(): void;
}

/**
 * A message together with the name of its channel. Packages have further ones, whose types they export: give the
 * parameter of your function the type `Point | PodSyncPoint`.
 */
export type Point = { [N in PointName]: { readonly name: N; readonly message: PointMessages[N] } }[PointName];

/** An operation together with the name of its channel. As for `Point`, packages have further ones. */
export type Operation = {
  [N in OperationName]: { readonly name: N; readonly message: OperationMessages[N] };
}[OperationName];

/** The functions that are called for the messages of all channels. */
export interface TelemetryObserver {
  /** A message of a point channel. */
  point?(point: Point): void;
  /** An operation begins; called synchronously, before any of its work. */
  started?(operation: Operation): void;
  /** An operation has ended; its message has `result` or `error`. */
  settled?(operation: Operation, durationMs: number): void;
}

const listener = optional(callback(() => undefined));
const OPTIONS = { point: listener, started: listener, settled: listener };

/**
 * Subscribes to the channels of the library: with `point` to those of events, with the others to those of operations.
 * If an observer throws or rejects, that becomes a process warning; what a direct subscriber of a diagnostics channel
 * throws is an uncaught exception in Node.js.
 * @throws {TypeError} for anything else than functions with these names.
 */
export function observe(observer: TelemetryObserver): Subscription {
  resolveOptions('observe', observer, OPTIONS);
  const hears = (['point', 'settled'] as const).filter((name) => observer[name] !== undefined);
  return attach(observer, hears.map(addObserver));
}

/** `observe()` for what only counts: an event counts as unheard if nothing else hears it. */
export function count(observer: TelemetryObserver): Subscription {
  return attach(observer, [addObserver('counting')]);
}

function attach(observer: TelemetryObserver, ends: (() => void)[]): Subscription {
  const observePoint = (name: string): void => {
    const channelName = `resilient-watcher:${name}`;
    const listener = (message: unknown): void => {
      isolated(channelName, () => observer.point?.({ name, message } as Point));
    };
    subscribe(channelName, listener);
    ends.push(() => unsubscribe(channelName, listener));
  };
  if (observer.point) ends.push(followNames('events', observePoint));
  if (observer.started ?? observer.settled)
    ends.push(followNames('operations', (name) => ends.push(observeOperation(name, observer))));
  const close = (): void => {
    for (const end of ends.splice(0)) end();
  };
  return { close, [Symbol.dispose]: close };
}

function observeOperation(name: string, observer: TelemetryObserver): () => void {
  const operation = operationChannel(name);
  const channelName = `resilient-watcher.${name}`;
  const begun = new WeakMap<object, number>();
  const settled = (message: object): void => {
    const began = begun.get(message);
    // The operation began before the observer subscribed.
    if (began === undefined) return;
    begun.delete(message);
    const durationMs = systemClock.monotonic() - began;
    isolated(channelName, () => observer.settled?.({ name, message } as Operation, durationMs));
  };
  const subscribers = {
    start(message: object): void {
      begun.set(message, systemClock.monotonic());
      isolated(channelName, () => observer.started?.({ name, message } as Operation));
    },
    end(message: object): void {
      // Synchronous work already has its result.
      if ('result' in message || 'error' in message) settled(message);
    },
    asyncStart(): void {},
    asyncEnd: settled,
    error(): void {},
  };
  operation.subscribe(subscribers);
  return () => {
    operation.unsubscribe(subscribers);
  };
}

/** Does the work of an observer. What it throws or rejects with becomes a process warning. */
export function isolated(channelName: string, work: () => unknown): void {
  const failed = (error: unknown): void => process.emitWarning(new ListenerError(channelName, error));
  try {
    const result = work();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
