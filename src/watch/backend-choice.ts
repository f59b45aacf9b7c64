import { nodeFsBackend } from './backends/node-fs.js';
import { ParcelBackend } from './backends/parcel.js';
import { forSmallTrees } from './backends/small-trees.js';
import { pollingBackend } from './backends/polling.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { WatchBackend } from '../core/watch-backend.js';
import type { BackendName } from './watcher-options.js';

/** What the backends are made of. */
interface Ports {
  readonly clock: Clock;
  readonly fs: FileSystem;
  readonly pollIntervalMs: number;
  /** A tree is watched. */
  readonly recursive: boolean;
}

/** The backends to try, in order. */
export function backendsFor(choice: BackendName | WatchBackend, ports: Ports): WatchBackend[] {
  switch (choice) {
    case 'auto':
      // By measurement: hints at once, and of writes; one watch a directory, in the process's one inotify instance.
      if (!ports.recursive) return [nodeFsBackend, new ParcelBackend(ports.fs, ports.clock)];
      // On Linux `parcel`, too, takes a watch for each directory of a tree; elsewhere one for all.
      return process.platform === 'linux'
        ? [forSmallTrees(nodeFsBackend), new ParcelBackend(ports.fs, ports.clock), nodeFsBackend]
        : [new ParcelBackend(ports.fs, ports.clock), nodeFsBackend];
    case 'fs':
      return [nodeFsBackend];
    case 'parcel':
      return [new ParcelBackend(ports.fs, ports.clock)];
    case 'poll':
      return [pollingBackend(ports.clock, ports.pollIntervalMs)];
    default:
      return [choice];
  }
}
