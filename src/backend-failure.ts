import { BackendError, errnoOf } from './errors.js';

/** What a backend's failure at a directory means, as a typed error. Linux reports both limits as odd codes. */
export function backendFailure(backend: string, path: string, cause: unknown): BackendError {
  if (cause instanceof BackendError) return cause;
  const code = errnoOf(cause);
  const text = cause instanceof Error ? cause.message : String(cause);
  if (code === 'EMFILE' || code === 'ENFILE') {
    const sysctl = 'fs.inotify.max_user_instances';
    const message = `Cannot watch "${path}" with "${backend}": no inotify instance is left; raise ${sysctl}`;
    return new BackendError('ERR_BACKEND_INSTANCE_LIMIT', backend, message, { cause, sysctl });
  }
  // Node says ENOSPC; @parcel/watcher has no codes, only the text.
  if (code === 'ENOSPC' || text.includes('No space left on device')) {
    const sysctl = 'fs.inotify.max_user_watches';
    const message = `Cannot watch "${path}" with "${backend}": no inotify watch is left; raise ${sysctl}`;
    return new BackendError('ERR_BACKEND_WATCH_LIMIT', backend, message, { cause, sysctl });
  }
  return new BackendError('ERR_BACKEND_DOWN', backend, `Cannot watch "${path}" with "${backend}": ${text}`, {
    cause,
  });
}
