/** The package "@resilient-watcher/sync-pods": a controller that makes kubelet update the files of pods at once. */
export { PodSync, type PodSyncStatus } from './pod-sync.js';
export type { PodSyncEvents, PodSyncPoint, SyncedPod } from './pod-sync-events.js';
export type { PodSyncOptions } from './pod-sync-options.js';
