/** The entry point "resilient-watcher". */
export {
  AtomicVolume,
  type AtomicVolumeOptions,
  type AtomicVolumeStatus,
  type VolumeContents,
} from './write/atomic-volume.js';
export type { VolumeEntries, VolumeEntry } from './write/volume-files.js';
export type { VolumeWriteResult } from './write/volume-writer.js';
export {
  atomicWriteFile,
  atomicWriteFileSync,
  type AtomicWriteFileOptions,
  type AtomicWriteFileSyncOptions,
} from './write/atomic-write-file.js';
export type { AtomicWriteResult } from './write/replace-file.js';
export { BackendError, type BackendErrorCode } from './core/backend-error.js';
export { ClosedError, ListenerError } from './core/errors.js';
export { ResilientError } from './core/resilient-error.js';
export { TokenError, type TokenErrorCode } from './core/token-error.js';
export { TargetError, type TargetErrorCode } from './fs/target-error.js';
export { KubernetesError, type KubernetesErrorCode } from './kubernetes/kubernetes-error.js';
export { SecretError, type SecretErrorCode } from './token/secret-error.js';
export { WriteError, type WriteErrorCode, type WriteStep } from './write/write-error.js';
export { fetchWithToken, type FetchWithTokenOptions, type TokenSource } from './token/fetch-with-token.js';
export { fileSink, type FileSinkOptions } from './token/file-sink.js';
export { nodeFileSystem, type FileSystem, type FileSystemCalls } from './core/file-system.js';
export { systemClock, type Clock, type Scheduled } from './core/clock.js';
export { systemRandom, type Random } from './core/random.js';
export type {
  Hint,
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchedTree,
  WatchSubscription,
} from './core/watch-backend.js';
export {
  TokenCredential,
  type TokenAnswer,
  type TokenClient,
  type TokenCredentialFields,
  type TokenRequest,
} from './core/token-client.js';
export type { TokenClaims } from './core/token-claims.js';
export type { ValueSource } from './core/value-source.js';
export { readVolume, type ReadVolumeOptions } from './fs/read-volume.js';
export { ResilientWatcher, watch } from './watch/resilient-watcher.js';
export type { TargetPath } from './fs/targets/target.js';
export type { ComponentStatus, LastError } from './core/component.js';
export type { Degradation, Expiry, Readable, Recovery, Restart, Unreadable } from './core/events.js';
export type { Change, ChangeCause, Digests, KeyDifference } from './watch/change.js';
export { waitFor, type WaitForOptions } from './watch/wait-for.js';
export type { IgnorePattern } from './fs/path-globs.js';
export type { ResilientWatcherEvents, RevisionChange, WatcherWarning } from './watch/watcher-events.js';
export type { ResilientWatcherOptions, TreeWatchOptions } from './watch/watcher-options.js';
export type { BackendName } from './watch/backends/catalog.js';
export type { WatcherState, WatcherStatus } from './watch/watcher-status.js';
export {
  FileSnapshot,
  MissingSnapshot,
  SetSnapshot,
  type FileState,
  type SetKind,
  type Snapshot,
} from './fs/snapshot.js';
export {
  ServiceAccountToken,
  tokenFromAnswer,
  tokenFromText,
  type TokenDates,
  type TokenFormat,
} from './token/token.js';
export {
  TokenFile,
  type TokenFileEvents,
  type TokenFileOptions,
  type TokenFileStatus,
} from './token/token-file.js';
export { TokenRefresher } from './token/token-refresher.js';
export type { TokenSink, TokenSinkStatus } from './token/delivery.js';
export type { TokenRefresherOptions } from './token/refresher-options.js';
export type {
  TokenRefresherEvents,
  TokenRefresherStatus,
  TokenWakeReason,
} from './token/refresher-status.js';
export { CredentialFiles, Credentials, credentials, type CredentialKeys } from './token/credentials.js';
export { Secret, SecretFile, type SecretEncoding, type SecretFileOptions } from './token/secret-file.js';
export type {
  ChangedOptions,
  WatchedValueEvents,
  WatchedValueOptions,
  WatchedValueStatus,
} from './watch/watched-value.js';
export type { TokenSchedule, TokenScheduleName } from './token/schedule.js';
export type {
  TokenFileChange,
  TokenWatcher,
  TokenWatcherEvent,
  TokenWatcherFactory,
} from './token/token-watch.js';
export type { Owner } from './write/file-attributes.js';
export type { Durability } from './write/pending-file.js';
export { isTemporaryName } from './write/temporary-name.js';
export type { SyncWriteData, WriteChunk, WriteData } from './write/write-source.js';
export { healthHandler, type HealthReply, type HealthRequest } from './telemetry/health-handler.js';
export { healthOf, type Health, type HealthCheck } from './telemetry/health.js';
export { logTo, type LogOptions, type StructuredLogger } from './telemetry/log.js';
export {
  observe,
  type Operation,
  type Point,
  type Subscription,
  type TelemetryObserver,
} from './telemetry/observe.js';
export type {
  ActionMessage,
  ChangeMessage,
  CheckMessage,
  ComponentHandle,
  ComponentMessage,
  ConfigReloadMessage,
  DegradedMessage,
  ErrorMessage,
  ErrorSummary,
  OperationMessage,
  OperationMessages,
  OperationName,
  PointMessages,
  PointName,
  ProblemSummary,
  PublishMessage,
  ReadableMessage,
  RecoveredMessage,
  RejectedMessage,
  RestartMessage,
  TokenDeliveryMessage,
  TokenRequestMessage,
  UnhealthyMessage,
  WarningMessage,
  WriteMessage,
} from './core/telemetry-messages.js';
