/** The messages on the channels of `telemetry.ts`. The types are API. Messages are plain data without secrets. */
import type { MetricSample, Verdict } from './status-description.js';

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

/** An error as telemetry shows it. */
export interface ErrorSummary {
  readonly name: string;
  /** The error's stable code; null if it has none. */
  readonly code: string | null;
  /** Empty for errors of user code, which may quote anything. */
  readonly message: string;
}

/** One thing that is wrong with a configuration: names and places, never a value. */
export interface ProblemSummary {
  readonly code: string;
  /**
   * The name of the source: a path, `environment APP_*`, `values`, or `validate` when the value comes from no
   * source.
   */
  readonly source: string;
  /** The path of the value, from the top. */
  readonly path?: readonly string[] | undefined;
  /** The line in the text, from 1. */
  readonly line?: number | undefined;
  /** The column, from 1. */
  readonly column?: number | undefined;
  /** What is wrong, without values. */
  readonly message: string;
}

/** The fields of every message. */
export interface ComponentMessage {
  readonly component: ComponentHandle;
}

/** A certificate, by what may be shown of it. */
export interface CertificateSummary {
  readonly subject?: string;
  /** SHA-256, as `AB:CD:…`. */
  readonly fingerprint256?: string;
  /** Epoch ms. */
  readonly expiresAt?: number;
}

/** The content differs from what was last reported. Certificates only, if there is one: what is in use now. */
export interface ChangeMessage extends ComponentMessage, CertificateSummary {
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

/** The backend failed; the next attempt to subscribe begins after `delayMs`. */
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

/** Native watching works again. */
export interface RecoveredMessage extends ComponentMessage {
  readonly backend?: string;
  readonly degradedMs?: number;
}

/** A problem that watching cannot solve, such as a `subPath` mount. */
export interface WarningMessage extends ComponentMessage {
  readonly code: string;
  readonly message: string;
}

/** The target cannot be read, a certificate or token has expired, or a failure does not recover by itself (`error`). */
export interface ErrorMessage extends ComponentMessage {
  readonly error: ErrorSummary;
}

/** The target can be read again. */
export interface ReadableMessage extends ComponentMessage {
  readonly unreadableMs?: number;
}

/** A configuration was not healthy in its trial; the one before is in use again. */
export interface RevertedMessage extends ComponentMessage {
  readonly error: ErrorSummary;
  readonly sources: readonly string[];
}

/** An update is rejected; the last good contents stay in use. */
export interface RejectedMessage extends ComponentMessage {
  /** Configuration only: everything that is wrong, without values. */
  readonly problems?: readonly ProblemSummary[];
  readonly error?: ErrorSummary;
}

/** A certificate expires soon and has not been replaced. */
export interface ExpiringMessage extends ComponentMessage, CertificateSummary {
  readonly remainingMs: number;
}

/** A CA was removed, and the connections of a server or client that were made before end. */
export interface ConnectionsEndedMessage extends ComponentMessage {
  /** The function that created the server or client, such as `serveTls`. */
  readonly by: string;
  readonly connections: number;
}

/** A pod was patched because an object that it mounts has changed. */
export interface SyncedMessage extends ComponentMessage {
  readonly namespace: string;
  readonly pod: string;
  /** From the change to the patch, ms. */
  readonly delayMs: number;
}

/** A pod has waited for so long that kubelet has updated its files by itself. */
export interface BehindMessage extends ComponentMessage {
  readonly namespace: string;
  readonly pod: string;
  readonly waitedMs: number;
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
  reverted: RevertedMessage;
  expiring: ExpiringMessage;
  expired: ErrorMessage;
  connectionsEnded: ConnectionsEndedMessage;
  synced: SyncedMessage;
  behind: BehindMessage;
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

/** A run of an action or a check of a `ReloadAction`. `result`: `succeeded`, or `interrupted` by `close()`. */
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
