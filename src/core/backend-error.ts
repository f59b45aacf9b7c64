import { ResilientError } from './resilient-error.js';

/** Why a backend cannot report changes. */
export type BackendErrorCode =
  | 'ERR_BACKEND_INSTANCE_LIMIT'
  | 'ERR_BACKEND_WATCH_LIMIT'
  | 'ERR_BACKEND_UNAVAILABLE'
  /** The target is on a file system without events (NFS, FUSE, …); it is polled while it is there. */
  | 'ERR_BACKEND_NO_EVENTS'
  | 'ERR_BACKEND_DOWN'
  /**
   * The backend could watch the target, but another one is better suited. Not a failure while there is another one.
   */
  | 'ERR_BACKEND_UNSUITED';

/** Native watching is unavailable or has ended. The target is polled, and the backend is retried. */
export class BackendError extends ResilientError {
  override readonly name = 'BackendError';
  readonly code: BackendErrorCode;
  /** The name of the backend. */
  readonly backend: string;
  /** For the two inotify limits: the kernel setting to raise. */
  readonly sysctl: string | undefined;

  constructor(
    code: BackendErrorCode,
    backend: string,
    message: string,
    options?: ErrorOptions & { sysctl?: string },
  ) {
    super(message, options);
    this.code = code;
    this.backend = backend;
    this.sysctl = options?.sysctl;
  }
}
