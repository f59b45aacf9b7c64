/**
 * Reads what may be replaced while it is read.
 *
 * | an attempt                                           | then                                               |
 * |------------------------------------------------------|----------------------------------------------------|
 * | finds something                                      | that is the result                                 |
 * | finds that something has moved, or fails because of  | another attempt, which uses no answer that was     |
 * | that                                                 | given before; the result is undefined after        |
 * |                                                      | `MAX_ATTEMPTS`                                     |
 */
import { hasMoved } from '../core/errno.js';
import { nextSlice, type Steps } from '../core/steps.js';
import type { Disk } from './disk.js';

/** What was to be read was replaced. */
export const MOVED = Symbol('moved');
export type Moved = typeof MOVED;

/** How many times a look reads a target that is replaced while it is read. */
export const MAX_ATTEMPTS = 20;

/** Makes attempts until one succeeds. Only the first one uses shared answers. */
export function* attempts<T>(shared: Disk, attempt: (disk: Disk) => Steps<T | Moved>): Steps<T | undefined> {
  for (let count = 0; count < MAX_ATTEMPTS; count += 1) {
    try {
      const found = yield* attempt(count === 0 ? shared : shared.afresh);
      if (found !== MOVED) return found;
    } catch (error) {
      if (!hasMoved(error)) throw error;
    }
    yield* nextSlice();
  }
  return undefined;
}
