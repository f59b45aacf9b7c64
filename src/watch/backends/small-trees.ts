import { BackendError } from '../../core/errors.js';
import type { WatchBackend } from '../../core/watch-backend.js';

/**
 * Whenever a directory comes or goes the whole list is directoriesSet at anew, half a microsecond each: 2 ms at most, which is
 * what a change is allowed to take.
 */
const MAX_DIRECTORIES = 4_096;

/** A backend that leaves more directories than it does well to another one: `ERR_BACKEND_UNSUITED`. */
export function forSmallTrees(backend: WatchBackend): WatchBackend {
  return {
    ...backend,
    async subscribe(sink, options) {
      const subscription = await backend.subscribe(sink, options);
      return {
        setDirectories(directories) {
          if (directories.length > MAX_DIRECTORIES) {
            const message = `The backend "${backend.name}" is not used for a tree of ${directories.length} directories; another one takes more than ${MAX_DIRECTORIES} better.`;
            throw new BackendError('ERR_BACKEND_UNSUITED', backend.name, message);
          }
          return subscription.setDirectories(directories);
        },
        close: () => subscription.close(),
      };
    },
  };
}
