import { told } from '../../core/ports/platform-path.js';
import { errnoOf } from '../../core/errors/errno.js';
import { BackendError } from '../../core/errors/backend-error.js';

/**
 * Converts a backend's failure at a path into a typed error. For the two inotify limits it names the sysctl to
 * raise, whether the cause has a `code` (Node) or only the system's text (`@parcel/watcher`).
 */
export function backendFailure(backend: string, path: string, cause: unknown): BackendError {
  if (cause instanceof BackendError) return cause;
  const code = errnoOf(cause);
  const reason = cause instanceof Error ? cause.message : String(cause);
  const cannot = `Cannot watch "${told(path)}" with "${backend}"`;
  if (code === 'EMFILE' || code === 'ENFILE' || reason.includes('Too many open files')) {
    if (process.platform !== 'linux') {
      const message = `${cannot}: the process has too many files open; raise its limit, or watch fewer directories`;
      return new BackendError('ERR_BACKEND_LIMIT', backend, message, { cause });
    }
    const sysctl = 'fs.inotify.max_user_instances';
    const cure = `raise the sysctl ${sysctl}, or the limit of open files (ulimit -n) if that is what ran out`;
    const message = `${cannot}: no inotify instance is left for this user; ${cure}`;
    return new BackendError('ERR_BACKEND_LIMIT', backend, message, { cause, sysctl });
  }
  if (process.platform === 'linux' && (code === 'ENOSPC' || reason.includes('No space left on device'))) {
    const sysctl = 'fs.inotify.max_user_watches';
    const message = `${cannot}: no inotify watch is left for this user (the disk is not full); raise the sysctl ${sysctl}`;
    return new BackendError('ERR_BACKEND_LIMIT', backend, message, { cause, sysctl });
  }
  return new BackendError('ERR_BACKEND_DOWN', backend, `${cannot}: ${reason}`, { cause });
}

/** Whether the error says that the target is on a file system that reports no events. */
export function hasNoEvents(error: unknown): error is BackendError {
  return error instanceof BackendError && error.code === 'ERR_BACKEND_NO_EVENTS';
}
