/** The messages of events. The types are API. Messages are plain data without secrets. */
import type { MetricSample, Verdict } from './status-description.js';
import type { FieldsOf, PointName } from './telemetry-points.js';

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
