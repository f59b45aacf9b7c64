/** The only list of backends. To add a backend, add a file and an entry here. */
import type { Clock } from '../../core/ports/clock.js';
import { BackendError } from '../../core/errors/backend-error.js';
import type { FileSystem } from '../../core/ports/file-system.js';
import type { WatchBackend } from '../../core/ports/watch-backend.js';
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

/** A new backend by its name. For any target, `fs` is the fastest: its watches share one inotify instance, and it never waits. */
export function backendNamed(name: BackendName, ports: BackendPorts): WatchBackend {
  return BACKENDS[name === 'auto' ? 'fs' : name](ports);
}
