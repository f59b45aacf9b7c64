/** The events of `PodSync`, and what telemetry says about those that only it has. */
import type { ComponentHandle } from 'resilient-watcher';
import type { ComponentEvents, TelemetryTable } from 'resilient-watcher/internal';
import type { KubernetesError } from 'resilient-watcher/kubernetes';

/** A pod in an event of `PodSync`. */
export interface SyncedPod {
  readonly namespace: string;
  readonly pod: string;
}

/** Events of `PodSync`. */
export interface PodSyncEvents extends ComponentEvents {
  /** The annotation of a pod was changed, `delayMs` after `PodSync` heard that an object of the pod had changed. */
  synced: [event: SyncedPod & { readonly delayMs: number }];
  /** A pod has waited for `maxDelayMs` and is not patched: kubelet has updated its files by then. */
  behind: [event: SyncedPod & { readonly waitedMs: number }];
  /**
   * A list, a watch or a patch failed; the next attempt begins after `delayMs`. `request` is what was tried, such as
   * `patch pods in shop`, and has few values. If only one pod is refused, the message of the error names it.
   */
  retry: [event: { readonly error: KubernetesError; readonly request: string; readonly delayMs: number }];
  /**
   * The same request has failed three times in a row; for patches, as many pods of a namespace were refused and none was
   * patched. The message says what the error of `retry` does not: what to do if it lasts.
   */
  unhealthy: [event: { readonly error: KubernetesError; readonly consecutiveFailures: number }];
  /** Every request would succeed again: while no pod has to be patched, dry runs ask. */
  healthy: [];
}

type Told = Pick<PodSyncEvents, 'synced' | 'behind'>;
type Messages = { [E in keyof Told]: Told[E][0] & { readonly component: ComponentHandle } };

/** An event in telemetry that only a `PodSync` has. */
export type PodSyncPoint = {
  [E in keyof Messages]: { readonly name: E; readonly message: Messages[E] };
}[keyof Messages];

export const podSyncTelemetry: TelemetryTable<Messages> = {
  events: {
    synced: {
      fields: ['namespace', 'pod', 'delayMs'],
      level: 'routine',
      text: ({ namespace, pod, delayMs }) =>
        `pod ${namespace}/${pod} patched after ${Math.round(delayMs)} ms`,
      measure: ({ delayMs }, meter) => meter.record('pod_sync', delayMs / 1_000),
    },
    behind: {
      fields: ['namespace', 'pod', 'waitedMs'],
      level: 'warn',
      text: ({ namespace, pod, waitedMs }) =>
        `pod ${namespace}/${pod} not patched: it has waited for ${Math.round(waitedMs)} ms`,
      cause: ({ namespace }) => namespace,
      measure: (_, meter) => meter.count('pod_sync.behind', {}),
    },
  },
  metrics: {
    pod_sync: {
      kind: 'histogram',
      unit: 's',
      labels: ['target'],
      help: 'Time from the change of a mounted object to the patch of a pod.',
    },
    'pod_sync.behind': {
      kind: 'counter',
      unit: '{pod}',
      labels: ['target'],
      help: 'Pods that were not patched because they had waited for too long.',
    },
  },
};
