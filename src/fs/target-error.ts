/** The errors for what exists at a path but cannot be read. */
import { isDenied } from '../core/errno.js';
import { TargetError } from '../core/errors.js';

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
