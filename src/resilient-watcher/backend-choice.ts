import { nodeFsBackend } from '../backends/node-fs.js';
import { ParcelBackend } from '../backends/parcel.js';
import { pollingBackend } from '../backends/polling.js';
import type { Clock, FileSystem, WatchBackend } from '../ports.js';
import type { BackendName } from './watcher-options.js';

/** What the backends are made of. */
interface Ports {
  readonly clock: Clock;
  readonly fs: FileSystem;
  readonly pollIntervalMs: number;
  /** Trees are watched. */
  readonly recursive: boolean;
}

/** The backends to try, in order. */
export function backendsFor(choice: BackendName | WatchBackend, ports: Ports): WatchBackend[] {
  switch (choice) {
    case 'auto':
      // One subscription for a whole tree; below, for all else, one for each directory.
      if (ports.recursive) return [new ParcelBackend(ports.fs), nodeFsBackend];
      // For a file, by measurement: one watch a directory, hints at once, the process's one inotify instance.
      return [nodeFsBackend, new ParcelBackend(ports.fs)];
    case 'fs':
      return [nodeFsBackend];
    case 'parcel':
      return [new ParcelBackend(ports.fs)];
    case 'poll':
      return [pollingBackend(ports.clock, ports.pollIntervalMs)];
    default:
      return [choice];
  }
}
