/** The one list of backends. A new backend is a file of its own and an entry here. */
import type { Clock } from '../../core/clock.js';
import { BackendError } from '../../core/backend-error.js';
import type { FileSystem } from '../../core/file-system.js';
import type { WatchBackend } from '../../core/watch-backend.js';
import { nodeFsBackend } from './node-fs.js';
import type { ParcelBackend } from './parcel.js';
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
  parcel: (ports: BackendPorts) => parcelBackend(ports),
  poll: ({ clock, pollIntervalMs }: BackendPorts) => pollingBackend(clock, pollIntervalMs),
} satisfies Readonly<Record<string, (ports: BackendPorts) => WatchBackend>>;

/** It is loaded when it is subscribed to, as the native module is: few programs need either. */
function parcelBackend({ fs, clock }: BackendPorts): WatchBackend {
  const name: ParcelBackend['name'] = 'parcel';
  return {
    name,
    needsKernelEvents: true,
    async subscribe(sink) {
      const { ParcelBackend } = await import('./parcel.js').catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        const message = `Cannot load the backend "parcel": ${reason}`;
        throw new BackendError('ERR_BACKEND_UNAVAILABLE', name, message, { cause });
      });
      return new ParcelBackend(fs, clock).subscribe(sink);
    },
  };
}

/** The backends by name. */
export type BackendName = 'auto' | keyof typeof BACKENDS;

/** All names that the option `backend` accepts. */
export const BACKEND_NAMES: readonly string[] = ['auto', ...Object.keys(BACKENDS)];

/** The backends to try, in order; each is made when its turn comes. */
export function* backendsFor(
  choice: BackendName | WatchBackend,
  ports: BackendPorts,
  { isTree }: { readonly isTree: boolean },
): Generator<WatchBackend, void> {
  if (typeof choice !== 'string') yield choice;
  else if (choice !== 'auto') yield BACKENDS[choice](ports);
  else if (!isTree) {
    // By measurement: `fs` is faster, reports writes, and all its watches share one inotify instance.
    yield BACKENDS.fs();
    yield BACKENDS.parcel(ports);
  } else {
    // On Linux `parcel` too takes a watch for each directory of a tree; elsewhere one for the whole tree.
    if (process.platform === 'linux') yield forSmallTrees(BACKENDS.fs());
    yield BACKENDS.parcel(ports);
    yield BACKENDS.fs();
  }
}
