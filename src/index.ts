/** The door "resilient-watcher". */
export {
  BackendError,
  ClosedError,
  ListenerError,
  ResilientError,
  TargetError,
  type BackendErrorCode,
  type TargetErrorCode,
} from './errors.js';
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
  type WatchBackend,
  type WatchedDirectory,
  type WatchSubscription,
} from './ports.js';
export { ResilientWatcher, watch, type ResilientWatcherEvents } from './resilient-watcher.js';
export type { Degradation, Recovery, Restart } from './resilient-watcher/connection.js';
export type { Change, ChangeCause, RevisionChange } from './resilient-watcher/reporter.js';
export type { BackendName, ResilientWatcherOptions } from './resilient-watcher/watcher-options.js';
export type { WatcherStatus, WatcherWarning } from './resilient-watcher/watcher-status.js';
export { FileSnapshot, MissingSnapshot, type Snapshot } from './snapshot.js';
