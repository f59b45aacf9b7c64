/** The only list of backends. To add a backend, add a file and an entry here. */
import type { Clock } from '../../core/ports/clock.js';
import { BackendError } from '../../core/errors/backend-error.js';
import type { FileSystem } from '../../core/ports/file-system.js';
import { insidePath, told, toPlatform } from '../../core/ports/platform-path.js';
import type { WatchBackend, WatchedDirectory } from '../../core/ports/watch-backend.js';
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

/**
 * A backend by its name. For any target, `fs` is the fastest: its watches share one inotify instance, and it never
 * waits.
 */
export function backendOf(chosen: BackendName | WatchBackend, ports: BackendPorts): WatchBackend {
  if (typeof chosen === 'string') return BACKENDS[chosen === 'auto' ? 'fs' : chosen](ports);
  return toPlatform ? withPlatformPaths(chosen) : chosen;
}

/** The backend of an application, whose paths are those of the platform. */
function withPlatformPaths(backend: WatchBackend): WatchBackend {
  return {
    name: backend.name,
    needsKernelEvents: backend.needsKernelEvents === true,
    async subscribe(sink, options) {
      const hint: typeof sink.hint = ({ path, event } = {}) =>
        sink.hint({ path: path === undefined ? undefined : insidePath(path), event });
      const watches = await backend.subscribe({ hint, down: (error) => sink.down(error) }, options);
      let known: readonly WatchedDirectory[] | undefined;
      let outside: readonly WatchedDirectory[] = [];
      return {
        async setDirectories(directories) {
          if (directories !== known) outside = directories.map(toldDirectory);
          known = directories;
          return (await watches.setDirectories(outside)).map(insidePath);
        },
        close: () => watches.close(),
      };
    },
  };
}

function toldDirectory({ path, treeRoot, ...rest }: WatchedDirectory): WatchedDirectory {
  return { ...rest, path: told(path), ...(treeRoot !== undefined && { treeRoot: told(treeRoot) }) };
}
