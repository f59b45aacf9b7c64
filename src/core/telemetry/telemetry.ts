/**
 * The channels of the library on `node:diagnostics_channel`. Their names are API. Without subscribers no message is
 * built. Of an event, only the fields in telemetry-points.ts are published.
 */
import { channel, tracingChannel, type Channel, type TracingChannel } from 'node:diagnostics_channel';

import { errorCodeOf, ListenerError } from '../errors/errors.js';
import { ResilientError } from '../errors/resilient-error.js';
import { processState } from '../process-state.js';
import type { ComponentHandle } from './telemetry-messages.js';
import { followTelemetry } from './telemetry-definitions.js';
import {
  OPERATIONS,
  type OperationMessage,
  type OperationMessages,
  type OperationName,
} from './telemetry-operations.js';
import { eventOf, EVENTS, type ErrorSummary } from './telemetry-points.js';

const points = new Map<string, Channel>();
type OperationChannel = TracingChannel<unknown, OperationMessage>;
const operations = new Map<string, OperationChannel>();

/** The tracing channel of an operation of the library or of a package. */
export function operationChannel(name: string): OperationChannel {
  const known = operations.get(name) ?? tracingChannel(`resilient-watcher.${name}`);
  operations.set(name, known);
  return known;
}

/**
 * Calls back with each name, those of the library and of the packages, as soon as it is known. Returns a function that
 * ends it.
 */
export function followNames(of: 'events' | 'operations', follower: (name: string) => void): () => void {
  const own: Readonly<Record<string, unknown>> = of === 'events' ? EVENTS : OPERATIONS;
  return followTelemetry(own, (table) => table[of], follower);
}

followNames('events', (name) => points.set(name, channel(`resilient-watcher:${name}`)));

/** The components that have started and are not closed. */
const running = processState('running', () => new Set<ComponentHandle>());

/** Adds a component to those that run. Returns a function that removes it. */
export function addRunning(component: ComponentHandle): () => void {
  running().add(component);
  return () => void running().delete(component);
}

export function runningComponents(): Iterable<ComponentHandle> {
  return running();
}

/** Whether the channel of this event has a subscriber. */
export function isObserved(event: string): boolean {
  return points.get(event)?.hasSubscribers === true;
}

/** How many observers hear events, hear operations, and only count both. */
const observers = processState('observers', () => ({ point: 0, settled: 0, counting: 0 }));

/** Adds an observer. Returns a function that removes it. */
export function addObserver(hears: keyof ReturnType<typeof observers>): () => void {
  observers()[hears] += 1;
  return () => void (observers()[hears] -= 1);
}

/**
 * Whether telemetry shows this event to anybody: to an observer, or to a subscriber of its channel. Metrics subscribe to
 * every channel without showing anything, so while there are any, only observers count. An event without a channel is
 * the end of an operation.
 */
export function isHeardByTelemetry(event: string): boolean {
  const { point, settled, counting } = observers();
  if (!points.has(event)) return settled > 0;
  return point > 0 || (counting === 0 && isObserved(event));
}

/** Publishes the event if its channel exists and has a subscriber. */
export function publishPoint(component: ComponentHandle, event: string, payload?: object): void {
  const point = points.get(event);
  if (!point?.hasSubscribers) return;
  const given = (payload instanceof Error ? { error: payload } : { ...payload }) as Record<string, unknown>;
  const message: Record<string, unknown> = { component };
  const definition = eventOf(component.kind, event);
  if (!definition) return;
  for (const field of definition.fields) {
    const value = given[field];
    if (value !== undefined) message[field] = value instanceof Error ? summaryOf(value) : value;
  }
  point.publish(message);
}

/** The message of an operation; that of a package is typed there. */
export type MessageOf<N extends string> = N extends OperationName ? OperationMessages[N] : OperationMessage;

/** What its component says about an operation. */
export type DetailsOf<N extends string> = N extends OperationName
  ? Omit<OperationMessages[N], 'component'>
  : Readonly<Record<string, string>>;

/**
 * Runs the work and publishes its progress on the tracing channel: `start`, `end`, then `asyncStart` and `asyncEnd`,
 * preceded by `error` on failure. The value itself is not published, only what `resultOf` returns for it.
 */
export function trace<N extends string, T>(
  name: N,
  message: MessageOf<N>,
  work: () => Promise<T>,
  resultOf: (value: T) => string,
): Promise<T> {
  const operation = operationChannel(name);
  if (!operation.hasSubscribers) return work();
  const settle = (): void => {
    operation.asyncStart.publish(message);
    operation.asyncEnd.publish(message);
  };
  return operation.start.runStores(message, () => {
    const settled = work().then(
      (value) => {
        message.result = resultOf(value);
        settle();
        return value;
      },
      (error: unknown) => {
        message.error = summaryOf(error);
        operation.error.publish(message);
        settle();
        throw error;
      },
    );
    operation.end.publish(message);
    return settled;
  });
}

/** The same for synchronous work: `start` and `end`, with `error` in between on failure. */
export function traceSync<N extends OperationName, T>(
  name: N,
  message: OperationMessages[N],
  work: () => T,
  resultOf: (value: T) => string,
): T {
  const operation = operationChannel(name);
  if (!operation.hasSubscribers) return work();
  return operation.start.runStores(message, () => {
    try {
      const value = work();
      message.result = resultOf(value);
      return value;
    } catch (error) {
      message.error = summaryOf(error);
      operation.error.publish(message);
      throw error;
    } finally {
      operation.end.publish(message);
    }
  });
}

/** An error without its cause. For errors of user code only name and code are shown. */
function summaryOf(error: unknown): ErrorSummary {
  if (!(error instanceof Error)) return { name: 'Error', code: null, message: '' };
  const { name, message } = error;
  if (error instanceof ListenerError) {
    return { name, code: error.code, message: `A listener of "${error.event}" failed` };
  }
  return { name, code: errorCodeOf(error), message: error instanceof ResilientError ? message : '' };
}
