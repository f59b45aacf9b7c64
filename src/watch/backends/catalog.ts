/** The only list of backends. To add a backend, add a file and an entry here. */
import type { Clock } from '../../core/clock.js';
import { BackendError } from '../../core/backend-error.js';
import type { FileSystem } from '../../core/file-system.js';
import type { WatchBackend } from '../../core/watch-backend.js';
import { nodeFsBackend } from './node-fs.js';
import { pollingBackend } from './polling.js';

/** What the backends are created with. */
interface BackendPorts {
  readonly clock: Clock;
  readonly pollIntervalMs: number;
  readonly fs: Pick<FileSystem, 'watch'>;
}

const BACKENDS = {
  fs: ({ fs }: BackendPorts) => nodeFsBackend(fs.watch),
  parcel: ({ fs }: BackendPorts) => lazyParcelBackend(nodeFsBackend(fs.watch)),
  poll: ({ clock, pollIntervalMs }: BackendPorts) => pollingBackend(clock, pollIntervalMs),
} satisfies Readonly<Record<Exclude<BackendName, 'auto'>, (ports: BackendPorts) => WatchBackend>>;

/** Loaded on the first subscription, like the native module: few programs need either. */
function lazyParcelBackend(others: WatchBackend): WatchBackend {
  const name = 'parcel';
  return {
    name,
    needsKernelEvents: true,
    async subscribe(sink, options) {
      const { parcelBackend } = await import('./parcel.js').catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        const message = `Cannot load the backend "parcel": ${reason}`;
        throw new BackendError('ERR_BACKEND_UNAVAILABLE', name, message, { cause });
      });
      return parcelBackend(others).subscribe(sink, options);
    },
  };
}

/** The backends by name. */
export type BackendName = 'auto' | 'fs' | 'parcel' | 'poll';

/** All names that the option `backend` accepts. */
export const BACKEND_NAMES: readonly string[] = ['auto', ...Object.keys(BACKENDS)];

/** The backends to try, in order; each is created when its turn comes. */
export function* backendsFor(
  choice: BackendName | WatchBackend,
  ports: BackendPorts,
  { isTree }: { readonly isTree: boolean },
): Generator<WatchBackend, void> {
  if (typeof choice !== 'string') yield choice;
  else if (choice !== 'auto') yield BACKENDS[choice](ports);
  else if (!isTree) {
    // By measurement: `fs` is faster, reports writes, and all its watches share one inotify instance.
    yield BACKENDS.fs(ports);
    yield BACKENDS.parcel(ports);
  } else {
    // On Linux `parcel` also needs a watch for each directory of a tree; elsewhere, one for the whole tree.
    if (process.platform === 'linux') yield forSmallTrees(BACKENDS.fs(ports));
    yield BACKENDS.parcel(ports);
    yield BACKENDS.fs(ports);
  }
}

/**
 * When a directory is added or removed the whole list is set again, at half a microsecond for each directory: at
 * most 2 ms, the most that one change may take.
 */
const MAX_DIRECTORIES = 4_096;

/** Refuses trees with more directories than the backend handles well (`ERR_BACKEND_UNSUITED`). */
function forSmallTrees(backend: WatchBackend): WatchBackend {
  return {
    ...backend,
    async subscribe(sink, options) {
      const subscription = await backend.subscribe(sink, options);
      return {
        setDirectories(directories) {
          if (directories.length > MAX_DIRECTORIES) {
            const message = `The backend "${backend.name}" is not used for a tree of ${directories.length} directories: above ${MAX_DIRECTORIES}, another backend is faster`;
            throw new BackendError('ERR_BACKEND_UNSUITED', backend.name, message);
          }
          return subscription.setDirectories(directories);
        },
        close: () => subscription.close(),
      };
    },
  };
}
