/**
 * Looks at what may be replaced while it is read.
 *
 * | an attempt                                           | then                                               |
 * |------------------------------------------------------|----------------------------------------------------|
 * | finds something                                      | that is the result                                 |
 * | finds what cannot be read                            | that is the result, and the directories above it   |
 * |                                                      | are consulted, too                                 |
 * | finds that something has moved, or fails because of  | another attempt, which uses no answer that was     |
 * | that                                                 | given before; unstable after `MAX_ATTEMPTS`        |
 */
import { hasMoved } from '../core/errors/errno.js';
import { nextSlice, type Steps } from '../core/scheduling/steps.js';
import { directoriesAbove, mergeDirectories, type Consulted } from './consulted.js';
import type { Disk } from './disk.js';
import type { Observation } from './observation.js';

/** What was to be read was replaced. */
export const MOVED = Symbol('moved');
export type Moved = typeof MOVED;

/** How many times a look reads a target that is replaced while it is read. */
export const MAX_ATTEMPTS = 20;

/**
 * Makes attempts until one succeeds. Only the first one uses shared answers.
 * @param seen receives what the attempts have consulted.
 */
export function* attempts(
  shared: Disk,
  seen: { readonly consulted: Consulted },
  attempt: (disk: Disk) => Steps<Observation | Moved>,
): Steps<Observation> {
  for (let count = 0; count < MAX_ATTEMPTS; count += 1) {
    try {
      const found = yield* attempt(count === 0 ? shared : shared.afresh);
      if (found !== MOVED)
        return found.kind === 'unreadable' ? yield* withPathTo(found, shared.afresh) : found;
    } catch (error) {
      if (!hasMoved(error)) throw error;
    }
    yield* nextSlice();
  }
  return { kind: 'unstable', consulted: seen.consulted };
}

type Unreadable = Extract<Observation, { kind: 'unreadable' }>;

/** The same observation, with the directories above what cannot be read. What is below it cannot be listened to. */
function* withPathTo(seen: Unreadable, disk: Disk): Steps<Unreadable> {
  const { path } = seen.error;
  const others = seen.consulted.directories.filter((each) => !`${each.path}/`.startsWith(`${path}/`));
  return {
    ...seen,
    consulted: { directories: mergeDirectories([...others, ...(yield* directoriesAbove(path, disk))]) },
  };
}
