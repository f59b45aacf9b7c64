import { nodeFsBackend } from '../backends/node-fs.js';
import { pollingBackend } from '../backends/polling.js';
import type { Clock, WatchBackend } from '../ports.js';
import type { BackendName } from './watcher-options.js';

/** The backends to try, in order. */
export function backendsFor(
  choice: BackendName | WatchBackend,
  clock: Clock,
  pollIntervalMs: number,
): WatchBackend[] {
  switch (choice) {
    case 'auto':
    case 'fs':
      return [nodeFsBackend];
    case 'parcel':
      return [];
    case 'poll':
      return [pollingBackend(clock, pollIntervalMs)];
    default:
      return [choice];
  }
}
