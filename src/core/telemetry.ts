/**
 * The channels of the library on `node:diagnostics_channel`. Names and message types are API. Without subscribers no
 * message is built. Messages are plain data: only the fields of an event that are listed here are published, so
 * contents, tokens and secrets never reach a channel.
 */
import { channel, tracingChannel, type Channel, type TracingChannel } from 'node:diagnostics_channel';

import { errorCodeOf, ListenerError, ResilientError, type ConfigProblem } from './errors.js';

/** The component that a message is about. The same object in all messages of that component. */
export interface ComponentHandle {
  /** Its class, such as `ResilientWatcher`. */
  readonly kind: string;
  /** Its `name` option, or a default that describes it. */
  readonly name: string;
  /** Its current `status()`. */
  status(): { readonly name: string; readonly state: string };
}

/** An error as telemetry shows it. */
export interface ErrorSummary {
  readonly name: string;
  /** The error's stable code; null where it has none. */
  readonly code: string | null;
  /** Empty for errors of user code, which may quote anything. */
  readonly message: string;
}

/** The fields of every message. */
export interface ComponentMessage {
  readonly component: ComponentHandle;
}

/** The content differs from what was last reported. */
export interface ChangeMessage extends ComponentMessage {
  /** Watcher only: what triggered the check that first saw the difference. */
  readonly cause?: string;
  /** Watcher only: the keys that differ. */
  readonly added?: readonly string[];
  readonly changed?: readonly string[];
  readonly removed?: readonly string[];
  /** Configuration only: the paths of the values that differ. */
  readonly paths?: readonly (readonly string[])[];
  /**
   * Watcher only: the time since the change was made, by the file system's own timestamp, ms. Absent at the start, for
   * sets of files other than volumes, and on remote file systems.
   */
  readonly delayMs?: number;
}

/** The backend was lost; an attempt to subscribe again begins. */
export interface RestartMessage extends ComponentMessage {
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: ErrorSummary;
}

/** Native watching is unavailable; the target is polled. */
export interface DegradedMessage extends ComponentMessage {
  readonly error: ErrorSummary;
  readonly pollIntervalMs?: number;
}

/** Native watching is back. */
export interface RecoveredMessage extends ComponentMessage {
  readonly backend?: string;
  readonly degradedMs?: number;
}

/** A problem that watching cannot solve, such as a `subPath` mount. */
export interface WarningMessage extends ComponentMessage {
  readonly code: string;
  readonly message: string;
}

/** The target cannot be read at present (`unreadable`), or a failure that does not heal by itself (`error`). */
export interface ErrorMessage extends ComponentMessage {
  readonly error: ErrorSummary;
}

/** The target can be read again. */
export interface ReadableMessage extends ComponentMessage {
  readonly unreadableMs?: number;
}

/** An update is rejected; the last good contents stay in use. */
export interface RejectedMessage extends ComponentMessage {
  /** Configuration only: everything that is wrong, without values. */
  readonly problems?: readonly ConfigProblem[];
  readonly error?: ErrorSummary;
}

/** Attempts failed repeatedly, or the token has expired. */
export interface UnhealthyMessage extends ComponentMessage {
  readonly error: ErrorSummary;
  readonly consecutiveFailures?: number;
}

/** The point channels. The names are prefixed with `resilient-watcher:`. */
export interface PointMessages {
  /** The component is running. */
  start: ComponentMessage;
  /** The component was closed. */
  close: ComponentMessage;
  change: ChangeMessage;
  restart: RestartMessage;
  degraded: DegradedMessage;
  recovered: RecoveredMessage;
  warning: WarningMessage;
  unreadable: ErrorMessage;
  readable: ReadableMessage;
  rejected: RejectedMessage;
  unhealthy: UnhealthyMessage;
  healthy: ComponentMessage;
  error: ErrorMessage;
}

/** The fields of every operation: one object from `start` to `asyncEnd`, to which the result is added. */
export interface OperationMessage {
  /** Absent for plain functions such as `atomicWriteFile`. */
  readonly component?: ComponentHandle;
  /** The result in one word; set on success. */
  result?: string;
  /** Set on failure. */
  error?: ErrorSummary;
}

/** One check of a target. `result`: `unchanged`, `changed`, or `unstable` when another check has to follow. */
export interface CheckMessage extends OperationMessage {
  readonly component: ComponentHandle;
  /** What triggered the check: a backend's name, `poll`, `resync`, `restart`, `check` or `start`. */
  readonly cause: string;
}

/** A request for a token. `result`: `issued`, or `unchanged` when the current token was returned again. */
export interface TokenRequestMessage extends OperationMessage {
  readonly component: ComponentHandle;
  /** The `TokenWakeReason`. */
  readonly reason: string;
}

/** A delivery of a token to one sink. `result`: `delivered`. */
export interface TokenDeliveryMessage extends OperationMessage {
  readonly component: ComponentHandle;
  /** The name of the sink. */
  readonly sink: string;
}

/**
 * A load or reload of a configuration. `result`: `accepted`, `unchanged` (also a return to the values in use), or
 * `rejected`.
 */
export interface ConfigReloadMessage extends OperationMessage {
  readonly component: ComponentHandle;
}

/** A write of a file or of a volume's next revision. `result`: `written`, or `unchanged` (also when a newer write came first). */
export interface WriteMessage extends OperationMessage {
  /** The absolute path that is written. */
  readonly path: string;
}

/** A publication of a volume. `result`: the `outcome` of `VolumePublisher.publish()`. */
export interface PublishMessage extends OperationMessage {
  readonly component: ComponentHandle;
  readonly volumeId: string;
}

/** A run of an action or a check of a `ReloadAction`. `result`: `succeeded`, or `interrupted` by a newer update. */
export interface ActionMessage extends OperationMessage {
  readonly component: ComponentHandle;
  /** What kind of action: `exec`, `signal`, `webhook`, or `custom`. */
  readonly action: string;
}

/** The tracing channels. The names are prefixed with `resilient-watcher.`. */
export interface OperationMessages {
  check: CheckMessage;
  'token.request': TokenRequestMessage;
  'token.delivery': TokenDeliveryMessage;
  'config.reload': ConfigReloadMessage;
  write: WriteMessage;
  publish: PublishMessage;
  action: ActionMessage;
}

export type PointName = keyof PointMessages;
export type OperationName = keyof OperationMessages;

/**
 * The fields of an event's payload that are published, by the name of the event. Other events have no channel.
 */
const POINT_FIELDS: Readonly<Record<PointName, readonly string[]>> = {
  start: [],
  close: [],
  change: ['cause', 'added', 'changed', 'removed', 'paths', 'delayMs'],
  restart: ['attempt', 'delayMs', 'error'],
  degraded: ['error', 'pollIntervalMs'],
  recovered: ['backend', 'degradedMs'],
  warning: ['code', 'message'],
  unreadable: ['error'],
  readable: ['unreadableMs'],
  rejected: ['problems', 'error'],
  unhealthy: ['error', 'consecutiveFailures'],
  healthy: [],
  error: ['error'],
};

export const pointNames = Object.keys(POINT_FIELDS) as readonly PointName[];

const points = new Map<string, Channel>(
  pointNames.map((name) => [name, channel(`resilient-watcher:${name}`)]),
);
type OperationChannel = TracingChannel<unknown, OperationMessage>;

const operations: Readonly<Record<OperationName, OperationChannel>> = {
  check: tracingChannel('resilient-watcher.check'),
  'token.request': tracingChannel('resilient-watcher.token.request'),
  'token.delivery': tracingChannel('resilient-watcher.token.delivery'),
  'config.reload': tracingChannel('resilient-watcher.config.reload'),
  write: tracingChannel('resilient-watcher.write'),
  publish: tracingChannel('resilient-watcher.publish'),
  action: tracingChannel('resilient-watcher.action'),
};

export const operationNames = Object.keys(operations) as readonly OperationName[];

/** The tracing channel `resilient-watcher.<name>`. */
export function operationChannel(name: OperationName): OperationChannel {
  return operations[name];
}

/** Whether the channel of this event has a subscriber. */
export function isObserved(event: string): boolean {
  return points.get(event)?.hasSubscribers === true;
}

/** Publishes the event if its channel exists and has a subscriber. */
export function publishPoint(component: ComponentHandle, event: string, payload?: object): void {
  const point = points.get(event);
  if (!point?.hasSubscribers) return;
  const given = (payload instanceof Error ? { error: payload } : { ...payload }) as Record<string, unknown>;
  const message: Record<string, unknown> = { component };
  for (const field of POINT_FIELDS[event as PointName]) {
    const value = given[field];
    if (value !== undefined) message[field] = value instanceof Error ? summaryOf(value) : value;
  }
  point.publish(message);
}

/**
 * Runs the work and publishes its progress on the tracing channel: `start`, `end`, then `asyncStart` and `asyncEnd`,
 * preceded by `error` on failure. The value itself is not published, only what `resultOf` returns for it.
 */
export function trace<N extends OperationName, T>(
  name: N,
  message: OperationMessages[N],
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
