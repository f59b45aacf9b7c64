/** The entry point "resilient-watcher". */
export {
  AtomicVolume,
  type AtomicVolumeOptions,
  type AtomicVolumeStatus,
  type VolumeContents,
} from './write/atomic-volume.js';
export type { VolumeEntries, VolumeEntry } from './write/volume-files.js';
export type { VolumeWriteResult } from './write/write-volume.js';
export { atomicWriteFile, atomicWriteFileSync } from './write/atomic-write-file.js';
export type { AtomicWriteFileOptions, AtomicWriteFileSyncOptions } from './write/write-options.js';
export type { AtomicWriteResult } from './write/replace-file.js';
export { BackendError } from './core/errors/backend-error.js';
export type { ErrorCode } from './core/errors/error-codes.js';
export { ClosedError, ListenerError } from './core/errors/errors.js';
export { PackageError } from './core/errors/package-error.js';
export { ResilientError } from './core/errors/resilient-error.js';
export { TokenError } from './core/errors/token-error.js';
export { TargetError } from './fs/target-error.js';
export { WriteError } from './write/write-error.js';
export { fetchWithToken, type FetchWithTokenOptions, type TokenSource } from './token/fetch-with-token.js';
export { fileSink, type FileSinkOptions } from './token/file-sink.js';
export type { FileSystem, FileSystemCalls } from './core/ports/file-system.js';
export { systemClock, type Clock, type Scheduled } from './core/ports/clock.js';
export type { Random } from './core/ports/random.js';
export type {
  Hint,
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from './core/ports/watch-backend.js';
export {
  TokenCredential,
  type TokenAnswer,
  type TokenClaims,
  type TokenClient,
  type TokenRequest,
} from './core/ports/token-client.js';
export type { ValueSource } from './core/ports/value-source.js';
export { readVolume, type ReadVolumeOptions } from './fs/read-volume.js';
export { ResilientWatcher, watch } from './watch/resilient-watcher.js';
export type { ComponentStatus, LastError } from './core/lifecycle/component.js';
export type {
  Acceptance,
  Degradation,
  Expiry,
  Readable,
  Recovery,
  Restart,
  Unreadable,
} from './core/lifecycle/events.js';
export type { Change, Digests, KeyDifference } from './watch/change.js';
export { waitFor, type WaitForOptions } from './watch/wait-for.js';
export type { ResilientWatcherEvents, RevisionChange, WatcherWarning } from './watch/watcher-events.js';
export type { ResilientWatcherOptions } from './watch/watcher-options.js';
export type { WatcherStatus } from './watch/watcher-status.js';
export { FileSnapshot, MissingSnapshot, SetSnapshot, type Snapshot } from './fs/snapshot.js';
export { ServiceAccountToken, tokenFromAnswer, tokenFromText } from './token/token.js';
export {
  TokenFile,
  type TokenFileEvents,
  type TokenFileOptions,
  type TokenFileStatus,
} from './token/token-file.js';
export { TokenRefresher } from './token/token-refresher.js';
export type { TokenSink } from './token/delivery.js';
export type { TokenRefresherOptions } from './token/refresher-options.js';
export type {
  TokenRefresherEvents,
  TokenRefresherStatus,
  TokenWakeReason,
} from './token/refresher-status.js';
export {
  credentials,
  type CredentialFiles,
  type CredentialOptions,
  type Credentials,
} from './secret/credentials.js';
export { retryLogin, type RetryLoginOptions } from './secret/retry-login.js';
export { SecretError, SecretFile, type Secret, type SecretFileOptions } from './secret/secret-file.js';
export type { WatchedValueEvents, WatchedValueOptions, WatchedValueStatus } from './watch/watched-value.js';
export type { Parsing, TextParser } from './watch/run-parser.js';
export type { Durability } from './write/calls.js';
export { isTemporaryName } from './write/sweep.js';
export type { WriteData } from './write/write-source.js';
export { healthHandler, healthOf, type Health } from './telemetry/health.js';
export { logTo, type LogOptions, type StructuredLogger } from './telemetry/log.js';
export {
  observe,
  type Operation,
  type Point,
  type Subscription,
  type TelemetryObserver,
} from './telemetry/observe.js';
export type { ComponentHandle, PointMessages } from './core/telemetry/telemetry-messages.js';
export type { OperationMessage, OperationMessages } from './core/telemetry/telemetry-operations.js';
