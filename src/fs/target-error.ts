import { isDenied } from '../core/errno.js';
import { ResilientError } from '../core/resilient-error.js';

/** Why a target cannot be read although something exists at its path. */
export type TargetErrorCode =
  /** The path does not exist. Only where that is a failure and not a state, as in `readVolume`. */
  | 'ERR_TARGET_MISSING'
  | 'ERR_TARGET_LOOP'
  | 'ERR_TARGET_ACCESS'
  | 'ERR_TARGET_NOT_DIRECTORY'
  | 'ERR_TARGET_NOT_FILE'
  /** `..data` leads out of the volume, which kubelet's layout never does. */
  | 'ERR_TARGET_LAYOUT'
  /** It exceeds `maxFiles`, `maxContentBytes` or `maxTotalBytes` (`AtomicVolume.read()`). */
  | 'ERR_TARGET_TOO_LARGE'
  | 'ERR_TARGET_IO'
  /** The condition of `waitFor` was not met in time. */
  | 'ERR_TARGET_TIMEOUT';

/** The target is there but cannot be read. It may heal by itself; watching goes on. */
export class TargetError extends ResilientError {
  override readonly name = 'TargetError';
  readonly code: TargetErrorCode;
  /** The path that failed: the target or a component of its path. */
  readonly path: string;

  constructor(code: TargetErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.path = path;
  }
}

const WHAT_IS_WRONG: Partial<Record<TargetError['code'], string>> = {
  ERR_TARGET_LOOP: 'the chain of links is a loop, or longer than 40 links',
  ERR_TARGET_ACCESS: 'permission denied; check the mode of the file and of the directories above it',
  ERR_TARGET_NOT_DIRECTORY: 'a path component is not a directory',
  ERR_TARGET_LAYOUT: 'the link leads out of the volume, which kubelet never does; nothing behind it is read',
};

/** The error for an entry at `path` that exists but cannot be read. */
export function targetError(code: TargetError['code'], path: string, cause?: unknown): TargetError {
  const what = WHAT_IS_WRONG[code] ?? (cause instanceof Error ? cause.message : 'it cannot be read');
  return new TargetError(code, path, `Cannot read "${path}": ${what}`, { cause });
}

/** The error for a failed call on the entry at `path`. */
export function readingError(path: string, cause: unknown): TargetError {
  return targetError(isDenied(cause) ? 'ERR_TARGET_ACCESS' : 'ERR_TARGET_IO', path, cause);
}

/** The error of whoever reads a volume where there is a file. */
export function notAVolume(path: string): TargetError {
  return new TargetError('ERR_TARGET_NOT_DIRECTORY', path, `Cannot read the volume "${path}": it is a file`);
}
