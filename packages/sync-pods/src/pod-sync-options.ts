import type { Clock, Random } from 'resilient-watcher';
import {
  flag,
  isNonEmptyString,
  matching,
  milliseconds,
  nonEmptyString,
  number,
  optional,
  port,
  PORT_OPTIONS,
  resolveOptions,
} from 'resilient-watcher/internal';
import type { ClusterClient } from 'resilient-watcher/kubernetes';

/** Options of `PodSync`. */
export interface PodSyncOptions {
  /** The name in its status and telemetry; default `PodSync`. */
  readonly name?: string | undefined;
  /** Default: `clusterClient()`, with the credentials of the pod. */
  readonly client?: ClusterClient | undefined;
  /** The namespaces whose pods are synced; default: all. */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * A label selector of the pods that are synced. Default: all pods of `namespaces`; without `namespaces`, those with
   * the label `resilient-watcher.dev/sync=true`.
   */
  readonly selector?: string | undefined;
  /** Whether Secrets are followed, too: their metadata, which RBAC allows only together with their data. Default false. */
  readonly secrets?: boolean | undefined;
  /** Default 50. */
  readonly maxPatchesPerSecond?: number | undefined;
  /** How many patches may be sent at once after a quiet time. Default 200. */
  readonly burst?: number | undefined;
  /** Spreads the first patches of the pods of one object over this time, ms. Default 0: as soon as possible. */
  readonly splayMs?: number | undefined;
  /** A pod that has waited for longer is not patched, ms. Default 90,000: kubelet's default period is at most that. */
  readonly maxDelayMs?: number | undefined;
  /** The time between two complete lists, ms. Default 600,000. */
  readonly resyncIntervalMs?: number | undefined;
  /** Closes it when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The source of random numbers. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

const OPTIONS = {
  name: nonEmptyString('PodSync'),
  client: optional(port<ClusterClient | undefined>(undefined, 'request', 'lines')),
  namespaces: matching<readonly string[] | undefined>(
    undefined,
    'an array of at least one name',
    (value) => Array.isArray(value) && value.length > 0 && value.every(isNonEmptyString),
  ),
  selector: nonEmptyString<undefined>(undefined),
  secrets: flag(false),
  maxPatchesPerSecond: number(50, { min: 0.1, max: 10_000 }),
  burst: number(200, { min: 1, max: 100_000 }),
  splayMs: milliseconds(0, { max: 3_600_000, atMost: 'maxDelayMs' }),
  maxDelayMs: milliseconds(90_000, { min: 1_000 }),
  resyncIntervalMs: milliseconds(600_000, { min: 10_000 }),
  ...PORT_OPTIONS,
};

/** The options with their defaults. */
export type ResolvedPodSyncOptions = ReturnType<typeof resolveOptions<typeof OPTIONS>>;

/** @throws {TypeError | RangeError} for a wrong option. */
export function resolvePodSyncOptions(options: PodSyncOptions | undefined): ResolvedPodSyncOptions {
  return resolveOptions('PodSync', options, OPTIONS);
}
