import { errnoOf } from '../core/errors.js';
import type { Effects } from '../fs/effects.js';

/** Errors of a file system that does not support an operation, rather than failed at it. */
const UNSUPPORTED: ReadonlySet<string | undefined> = new Set([
  'EPERM',
  'EINVAL',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
]);

/** Runs an operation; false when the file system does not support it and that is `tolerable`. */
export function* ifSupported(operation: Effects<void>, tolerable: boolean): Effects<boolean> {
  try {
    yield* operation;
    return true;
  } catch (error) {
    if (tolerable && UNSUPPORTED.has(errnoOf(error))) return false;
    throw error;
  }
}
