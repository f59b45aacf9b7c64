/** The messages on the channels of `telemetry.ts`. The types are API. Messages are plain data without secrets. */
import type { MetricSample, Verdict } from './status-description.js';
import type { ErrorSummary, FieldsOf, PointName } from './telemetry-points.js';

/** The component that a message is about. The same object in all messages of that component. */
export interface ComponentHandle {
  /** Its class, such as `ResilientWatcher`. */
  readonly kind: string;
  /** Its `name` option, or a default that describes it. */
  readonly name: string;
  /**
   * The events of this component that its owner reports as its own, such as `change` of the watcher of a `SecretFile`.
   * Absent if there are none.
   */
  readonly repeated?: readonly PointName[];
  /** Its current `status()`. */
  status(): { readonly name: string; readonly state: string };
  /** Why it is not live or not ready. */
  health(): Verdict;
  /** Its gauges. Absent if it has none. */
  metrics?(): Iterable<MetricSample>;
}

/** The fields of every message. */
export interface ComponentMessage {
  readonly component: ComponentHandle;
}

/**
 * The messages of the point channels of the library, by the name of the event. The names are prefixed with
 * `resilient-watcher:`.
 */
export type PointMessages = { [N in PointName]: ComponentMessage & FieldsOf<N> };

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

/** A publication of a volume. `result`: the `outcome` of `VolumePublisher.publish()`. */
export interface PublishMessage extends OperationMessage {
  readonly component: ComponentHandle;
  readonly volumeId: string;
}

/** The tracing channels of the library. The names are prefixed with `resilient-watcher.`. */
export interface OperationMessages {
  check: CheckMessage;
  'token.request': TokenRequestMessage;
  'token.delivery': TokenDeliveryMessage;
  'config.reload': ConfigReloadMessage;
  write: WriteMessage;
  publish: PublishMessage;
}

export type OperationName = keyof OperationMessages;
