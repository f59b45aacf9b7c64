/** The door "resilient-watcher". */
export {
  AtomicVolume,
  type AtomicVolumeOptions,
  type VolumeContents,
  type VolumeEntry,
} from './atomic-volume.js';
export type { VolumeWriteResult } from './atomic-volume/volume-writer.js';
export {
  atomicWriteFile,
  atomicWriteFileSync,
  type AtomicWriteFileOptions,
  type AtomicWriteFileSyncOptions,
} from './atomic-write-file.js';
export type { AtomicWriteResult } from './atomic-write-file/replace-file.js';
export {
  BackendError,
  ClosedError,
  KubernetesError,
  ListenerError,
  ResilientError,
  TargetError,
  TokenError,
  WriteError,
  type BackendErrorCode,
  type KubernetesErrorCode,
  type TargetErrorCode,
  type TokenErrorCode,
  type WriteErrorCode,
  type WriteStep,
} from './errors.js';
export { fetchWithToken, type TokenSource } from './fetch-with-token.js';
export { fileSink, type FileSinkOptions } from './file-sink.js';
export {
  nodeFileSystem,
  systemClock,
  systemRandom,
  type Clock,
  type FileSystem,
  type FileSystemCalls,
  type HintSink,
  type Random,
  type Scheduled,
  type TokenAnswer,
  type TokenClient,
  type TokenRequest,
  type WatchBackend,
  type WatchedDirectory,
  type WatchSubscription,
} from './ports.js';
export { readVolume, type ReadVolumeOptions } from './read-volume.js';
export { ResilientWatcher, watch, type ResilientWatcherEvents } from './resilient-watcher.js';
export type { Degradation, Recovery, Restart } from './resilient-watcher/connection.js';
export type { Change, ChangeCause, KeyDifference } from './resilient-watcher/change.js';
export type { RevisionChange } from './resilient-watcher/reporter.js';
export type { BackendName, ResilientWatcherOptions } from './resilient-watcher/watcher-options.js';
export type { WatcherStatus, WatcherWarning } from './resilient-watcher/watcher-status.js';
export {
  FileSnapshot,
  MissingSnapshot,
  SetSnapshot,
  type FileState,
  type SetKind,
  type Snapshot,
} from './snapshot.js';
export {
  ServiceAccountToken,
  tokenFromAnswer,
  tokenFromText,
  type TokenDates,
  type TokenFormat,
} from './token.js';
export {
  TokenFile,
  type TokenFileEvents,
  type TokenFileOptions,
  type TokenFileStatus,
} from './token-file.js';
export { TokenRefresher } from './token-refresher.js';
export type { TokenSink, TokenSinkStatus } from './token-refresher/delivery.js';
export type { TokenRefresherOptions } from './token-refresher/refresher-options.js';
export type {
  TokenRefresherEvents,
  TokenRefresherStatus,
  TokenWakeReason,
} from './token-refresher/refresher-status.js';
export type { TokenSchedule, TokenScheduleName } from './token-refresher/schedule.js';
export type { TokenFileChange, TokenWatcher, TokenWatcherFactory } from './token-watch.js';
export type { Durability, Owner } from './writing/pending-file.js';
export { isTemporaryName } from './writing/temporary-name.js';
export type { SyncWriteData, WriteChunk, WriteData } from './writing/write-source.js';
