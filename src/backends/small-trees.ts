import { BackendError } from '../errors.js';
import type { WatchBackend } from '../ports.js';

/**
 * Whenever a directory comes or goes the whole list is aimed at anew, half a microsecond each: 2 ms at most, which is
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
        aim(directories) {
          if (directories.length > MAX_DIRECTORIES) {
            const message = `The backend "${backend.name}" is not used for a tree of ${directories.length} directories; another one takes more than ${MAX_DIRECTORIES} better.`;
            throw new BackendError('ERR_BACKEND_UNSUITED', backend.name, message);
          }
          return subscription.aim(directories);
        },
        close: () => subscription.close(),
      };
    },
  };
}
