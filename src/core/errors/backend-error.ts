import type { CodeOf } from './error-codes.js';
import { CodedError, recognize } from './resilient-error.js';

/** Native watching is unavailable or has ended. The target is polled, and the backend is retried. */
export class BackendError extends CodedError<'BackendError'> {
  override readonly name = 'BackendError';
  /** The name of the backend. */
  readonly backend: string;
  /** For `ERR_BACKEND_LIMIT`: the kernel setting to raise. */
  readonly sysctl: string | undefined;

  constructor(
    code: CodeOf<'BackendError'>,
    backend: string,
    message: string,
    options?: ErrorOptions & { sysctl?: string },
  ) {
    super(code, message, options);
    this.backend = backend;
    this.sysctl = options?.sysctl;
  }
}
recognize(BackendError, 'BackendError');
