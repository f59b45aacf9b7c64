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
