/**
 * The operations of the library, each in one place: its message, what the log says about its end, and which metrics
 * count it. A component of another package brings its own: telemetry-definitions.ts.
 */
import { telemetryOf, type OperationDefinition } from './telemetry-definitions.js';
import type { ComponentHandle } from './telemetry-messages.js';
import { textOf, type ErrorSummary } from './telemetry-points.js';

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
 * A load or reload of a configuration. `result`: `accepted`, `unchanged` (also for a return to the values in use), or
 * `rejected`.
 */
export interface ConfigReloadMessage extends OperationMessage {
  readonly component: ComponentHandle;
}

/**
 * A write of a file or of a volume's next revision. `result`: `written`, or `unchanged` (also when a newer write came
 * first).
 */
export interface WriteMessage extends OperationMessage {
  /** The absolute path of the file or volume. */
  readonly path: string;
}

/** The tracing channels of the library. The names are prefixed with `resilient-watcher.`. */
export interface OperationMessages {
  check: CheckMessage;
  'token.request': TokenRequestMessage;
  'token.delivery': TokenDeliveryMessage;
  'config.reload': ConfigReloadMessage;
  write: WriteMessage;
}

export type OperationName = keyof OperationMessages;

type Definitions = { readonly [N in OperationName]: OperationDefinition<OperationMessages[N]> };

/**
 * Checks and writes are too frequent for a log. A reload is logged as its change or rejection, and a request that failed
 * as its `retry` or `error`.
 */
export const OPERATIONS: Definitions = {
  check: { measure: ({ cause }, meter) => meter.count('checks', { cause }) },
  'token.request': {
    line: ({ result }) =>
      result === 'issued' ? { level: 'routine', text: 'token request issued' } : undefined,
    measure({ reason, result }, meter, seconds) {
      meter.count('token.requests', { reason, result });
      meter.record('token.request.duration', seconds);
    },
  },
  'token.delivery': {
    line: ({ result, error }) =>
      error
        ? { level: 'warn', text: `token delivery failed: ${textOf(error)}` }
        : { level: 'routine', text: `token delivery ${result}` },
    measure: ({ sink, result }, meter) => meter.count('token.deliveries', { sink, result }),
  },
  'config.reload': { measure: ({ result }, meter) => meter.count('config.reloads', { result }) },
  write: {
    measure({ result }, meter, seconds) {
      meter.count('writes', { result });
      meter.record('write.duration', seconds);
    },
  },
};

/** The definition of an operation of the library, or of the package that has its component. */
export function operationOf(
  name: string,
  component: ComponentHandle | undefined,
): OperationDefinition | undefined {
  if (Object.hasOwn(OPERATIONS, name)) return OPERATIONS[name as OperationName];
  return component && telemetryOf(component.kind)?.operations?.[name];
}
