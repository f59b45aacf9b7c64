/** The one list of backends. A new backend is a file of its own and an entry here. */
import type { Clock } from '../../core/clock.js';
import type { FileSystem } from '../../core/file-system.js';
import type { WatchBackend } from '../../core/watch-backend.js';
import { nodeFsBackend } from './node-fs.js';
import { ParcelBackend } from './parcel.js';
import { pollingBackend } from './polling.js';
import { forSmallTrees } from './small-trees.js';

/** What the backends are made with. */
interface BackendPorts {
  readonly clock: Clock;
  readonly fs: FileSystem;
  readonly pollIntervalMs: number;
}

const BACKENDS = {
  fs: () => nodeFsBackend,
  parcel: ({ fs, clock }: BackendPorts) => new ParcelBackend(fs, clock),
  poll: ({ clock, pollIntervalMs }: BackendPorts) => pollingBackend(clock, pollIntervalMs),
} satisfies Readonly<Record<string, (ports: BackendPorts) => WatchBackend>>;

/** The backends by name. */
export type BackendName = 'auto' | keyof typeof BACKENDS;

/** All names that the option `backend` accepts. */
export const BACKEND_NAMES: readonly string[] = ['auto', ...Object.keys(BACKENDS)];

/** The backends to try, in order. */
export function backendsFor(
  choice: BackendName | WatchBackend,
  ports: BackendPorts,
  { isTree }: { readonly isTree: boolean },
): readonly WatchBackend[] {
  if (typeof choice !== 'string') return [choice];
  if (choice !== 'auto') return [BACKENDS[choice](ports)];
  const fs = BACKENDS.fs();
  const parcel = BACKENDS.parcel(ports);
  // By measurement: `fs` is faster, reports writes, and all its watches share one inotify instance.
  if (!isTree) return [fs, parcel];
  // On Linux `parcel` too takes a watch for each directory of a tree; elsewhere one for the whole tree.
  return process.platform === 'linux' ? [forSmallTrees(fs), parcel, fs] : [parcel, fs];
}
