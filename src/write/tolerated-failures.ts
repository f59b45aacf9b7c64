/** Failures of a call that are no failure of the write, or not the end of it. */
import { errnoOf } from '../core/errno.js';
import { call, together, type Effects } from '../fs/effects.js';

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

/** The result of a call; undefined if what it is called on does not exist. */
export function* ifExists<T>(steps: Effects<T>): Effects<T | undefined> {
  try {
    return yield* steps;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes a file or link, if it is there and nothing keeps it from being removed. */
export function* tryUnlink(path: string): Effects<'removed' | 'missing' | 'failed'> {
  try {
    yield* call('unlink', path);
    return 'removed';
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? 'missing' : 'failed';
  }
}

/** Runs each of these, also after one has failed; throws a failure at the end. They do not depend on each other. */
export function* runAll(tasks: readonly (() => Effects<unknown>)[]): Effects<void> {
  const failures: unknown[] = [];
  const catching = tasks.map(
    (task) =>
      function* (): Effects<void> {
        try {
          yield* task();
        } catch (error) {
          failures.push(error);
        }
      },
  );
  yield* together(catching);
  if (failures.length > 0) throw failures[0];
}
