import { BackendError, errnoOf } from '../errors.js';

/**
 * What a directory itself may be to blame for. The watcher looks again after `ENOENT` and `ENOTDIR`: the
 * directory moved between the look and the aim.
 */
const ofTheDirectory = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENAMETOOLONG', 'ESTALE']);

/**
 * The error to throw or report when `backend` could not watch `directoryPath`:
 *
 * - an errno error that tells of the directory itself is given back as it is;
 * - the two inotify limits become a `BackendError` that names the sysctl to raise, whether the cause has a
 *   `code` or only the system's text (`@parcel/watcher`);
 * - everything else becomes a `BackendError` `ERR_BACKEND_DOWN`.
 */
export function backendError(backend: string, directoryPath: string, cause: unknown): unknown {
  if (cause instanceof BackendError) return cause;
  const code = errnoOf(cause);
  if (code !== undefined && ofTheDirectory.has(code)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (code === 'EMFILE' || reason.includes('Too many open files')) {
    const sysctl = 'fs.inotify.max_user_instances';
    return new BackendError(
      'ERR_BACKEND_INSTANCE_LIMIT',
      backend,
      `Cannot watch ${directoryPath}: no inotify instance is left for this user. Raise the sysctl ${sysctl}, ` +
        `or the process's own limit of open files (ulimit -n) if that is what ran out.`,
      { cause, sysctl },
    );
  }
  if (code === 'ENOSPC' || reason.includes('No space left on device')) {
    const sysctl = 'fs.inotify.max_user_watches';
    return new BackendError(
      'ERR_BACKEND_WATCH_LIMIT',
      backend,
      `Cannot watch ${directoryPath}: no inotify watch is left for this user (the disk is not full). ` +
        `Raise the sysctl ${sysctl}.`,
      { cause, sysctl },
    );
  }
  return new BackendError(
    'ERR_BACKEND_DOWN',
    backend,
    `The backend "${backend}" cannot watch ${directoryPath}: ${reason}`,
    { cause },
  );
}
