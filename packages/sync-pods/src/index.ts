/** The package "@resilient-watcher/sync-pods": a controller that makes kubelet update the files of pods at once. */
export { PodSync, type PodSyncEvents, type PodSyncStatus, type SyncedPod } from './pod-sync.js';
export type { PodSyncOptions } from './pod-sync-options.js';
