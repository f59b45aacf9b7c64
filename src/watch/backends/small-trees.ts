import { BackendError } from '../../core/backend-error.js';
import type { WatchBackend } from '../../core/watch-backend.js';

/**
 * When a directory is added or removed the whole list is set again, at half a microsecond for each directory: at
 * most 2 ms, the most that one change may take.
 */
const MAX_DIRECTORIES = 4_096;

/** Leaves trees with more directories than the backend handles well to another backend (`ERR_BACKEND_UNSUITED`). */
export function forSmallTrees(backend: WatchBackend): WatchBackend {
  return {
    ...backend,
    async subscribe(sink, options) {
      const subscription = await backend.subscribe(sink, options);
      return {
        setDirectories(directories) {
          if (directories.length > MAX_DIRECTORIES) {
            const message = `The backend "${backend.name}" is not used for a tree of ${directories.length} directories: above ${MAX_DIRECTORIES} another backend is faster`;
            throw new BackendError('ERR_BACKEND_UNSUITED', backend.name, message);
          }
          return subscription.setDirectories(directories);
        },
        close: () => subscription.close(),
      };
    },
  };
}
