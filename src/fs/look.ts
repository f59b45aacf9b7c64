/**
 * Runs a look: a sequence of steps, each a plain function of the answers of the disk. A step keeps its results only
 * when it completes, so it can be repeated.
 *
 * | a step                           | then                                                    |
 * |----------------------------------|---------------------------------------------------------|
 * | completes                        | the next one runs in the same turn of the event loop    |
 * | completes, and the turn is spent | the next one runs in the next turn                      |
 * | waits for an answer (disk.ts)    | the answer is awaited, and the step is repeated with it |
 */
import { isTurnSpent, nextTurn, worked } from '../core/event-loop.js';
import { Unanswered, type Disk } from './disk.js';

/** A result that is found in steps. */
export interface Look<T extends object> {
  /** Takes the next step. The last one returns the result. Throws what the disk throws. */
  next(disk: Disk): T | undefined;
}

/** Waits until the next step can run. */
type Pause = () => Promise<void>;

/** Takes all steps: at once if nothing has to be awaited. */
export function run<T extends object>(look: Look<T>, disk: Disk): T | Promise<T> {
  const end = advance(look, disk);
  return typeof end === 'function' ? finish(look, disk, end) : end;
}

async function finish<T extends object>(look: Look<T>, disk: Disk, pause: Pause): Promise<T> {
  for (let next: T | Pause = pause; ;) {
    if (typeof next !== 'function') return next;
    await next();
    next = advance(look, disk);
  }
}

/** Takes steps until the end, or until one has to wait. */
function advance<T extends object>(look: Look<T>, disk: Disk): T | Pause {
  for (;;) {
    try {
      const found = look.next(disk);
      if (found) return found;
    } catch (error) {
      if (error instanceof Unanswered) return error.ask;
      throw error;
    }
    disk.forget();
    worked();
    if (isTurnSpent()) return nextTurn;
  }
}
