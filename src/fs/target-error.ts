import { isOnWindows, told } from '../core/ports/platform-path.js';
import { isDenied } from '../core/errors/errno.js';
import type { CodeOf } from '../core/errors/error-codes.js';
import { CodedError, recognize } from '../core/errors/resilient-error.js';

export type TargetErrorCode = CodeOf<'TargetError'>;

/** The target exists but cannot be read. It may recover by itself; watching continues. */
export class TargetError extends CodedError<'TargetError'> {
  override readonly name = 'TargetError';
  /** The path that failed: the target or a component of its path. */
  readonly path: string;

  constructor(code: TargetErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.path = told(path);
  }
}
recognize(TargetError, 'TargetError');

const WHAT_IS_WRONG: Partial<Record<TargetErrorCode, string>> = {
  ERR_TARGET_ACCESS: 'permission denied; check the mode of the file and of the directories above it',
  ERR_TARGET_LAYOUT: 'the link leads out of the volume, which kubelet never does; nothing behind it is read',
};

const DENIED_ON_WINDOWS =
  'permission denied; check who may read the file and the directories above it, and whether another process holds it open';

/** The error for an entry at `path` that exists but cannot be read. */
export function targetError(code: TargetErrorCode, path: string, cause?: unknown): TargetError {
  const onWindows = isOnWindows() && code === 'ERR_TARGET_ACCESS' ? DENIED_ON_WINDOWS : undefined;
  const what =
    onWindows ?? WHAT_IS_WRONG[code] ?? (cause instanceof Error ? cause.message : 'it cannot be read');
  return new TargetError(code, path, `Cannot read "${told(path)}": ${what}`, { cause });
}

/** The error for a path that does not lead to anything readable. */
export function wrongPath(path: string, what: string): TargetError {
  return new TargetError('ERR_TARGET_PATH', path, `Cannot read "${told(path)}": ${what}`);
}

/** The error for a failed call on the entry at `path`. */
export function readingError(path: string, cause: unknown): TargetError {
  return targetError(isDenied(cause) ? 'ERR_TARGET_ACCESS' : 'ERR_TARGET_IO', path, cause);
}

/** The error for a volume that turns out to be a file. */
export function notAVolume(path: string): TargetError {
  return new TargetError('ERR_TARGET_PATH', path, `Cannot read the volume "${told(path)}": it is a file`);
}
