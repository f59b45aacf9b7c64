/**
 * Work that is written once, and is done at once, in slices, or waiting for promises. It is a generator that yields each
 * promise it waits for:
 *
 *     function* sizeOf(fd: number, calls: Calls): Steps<bigint> {
 *       const stat = yield* wait(calls.fstat(fd, { bigint: true })); // an answer, or a promise of it
 *       yield* nextSlice(); // in the next turn of the event loop, if this one is spent
 *       return stat.size;
 *     }
 *     run(sizeOf(fd, calls)); // the result if nothing had to be waited for, otherwise a promise of it
 *     runNow(sizeOf(fd, synchronousCalls)); // nothing is yielded
 */
import { isTurnSpent, nextTurn, startTurnBudget } from './event-loop.js';

export type Steps<T> = Generator<Promise<unknown>, T, unknown>;

/** What a call returns: its answer, or a promise of it. */
export type Answer<T> = T | Promise<T>;

/** The answer, which may have to be waited for. */
export function* wait<T>(answer: Answer<T>): Steps<T> {
  return answer instanceof Promise ? ((yield answer) as T) : answer;
}

/** Goes on in the next turn of the event loop if the budget of this one is spent. */
export function* nextSlice(): Steps<void> {
  startTurnBudget();
  if (isTurnSpent()) yield nextTurn();
}

/**
 * Does the work, waiting for each promise that it yields.
 * @param isAbandoned asked after each wait: if it returns true, nothing more is done, and the promise never settles.
 */
export function run<T>(steps: Steps<T>, isAbandoned?: () => boolean): Answer<T> {
  const step = steps.next();
  return step.done ? step.value : finish(steps, step.value, isAbandoned);
}

async function finish<T>(
  steps: Steps<T>,
  first: Promise<unknown>,
  isAbandoned: (() => boolean) | undefined,
): Promise<T> {
  let step: IteratorResult<Promise<unknown>, T> = { done: false, value: first };
  while (!step.done) {
    let resume: () => IteratorResult<Promise<unknown>, T>;
    try {
      const answer = await step.value;
      resume = () => steps.next(answer);
    } catch (error) {
      resume = () => steps.throw(error);
    }
    if (isAbandoned?.()) return new Promise<never>(() => undefined);
    step = resume();
  }
  return step.value;
}

/** Does the work at once. */
export function runNow<T>(steps: Steps<T>): T {
  const result = run(steps);
  if (result instanceof Promise) throw new Error('Synchronous work cannot wait');
  return result;
}
