/**
 * Work that is written once, and is done at once, in slices, or waiting for promises. It is a generator that yields
 * each promise it waits for:
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

export type Steps<T> = Iterable<Promise<unknown>, T, unknown>;

/** What a call returns: its answer, or a promise of it. */
export type Answer<T> = T | Promise<T>;

/** The answer, which may have to be waited for. A generator for each one at hand would take longer than the call. */
export function wait<T>(answer: Answer<T>): Steps<T> {
  if (answer instanceof Promise) return later(answer);
  return new Done(answer);
}

/** Work that is done: its iterator, and its only result. */
class Done<T> {
  readonly done = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  next(): this {
    return this;
  }

  [Symbol.iterator](): this {
    return this;
  }
}

function* later<T>(answer: Promise<T>): Steps<T> {
  return (yield answer) as T;
}

const NOTHING = wait(undefined);

/** For a loop that is not divided into slices. */
export const atOnce = (): Steps<void> => NOTHING;

/** Goes on in the next turn of the event loop if the budget of this one is spent. */
export function nextSlice(): Steps<void> {
  startTurnBudget();
  return isTurnSpent() ? later(nextTurn()) : NOTHING;
}

/** How many small items are done before the clock is asked: for each one, that would take longer than the item. */
const ITEMS = 64;

/** For a loop over many items that take some microseconds: what to do before each of them. */
export function slices(): () => Steps<void> {
  let items = 0;
  return () => ((items = (items + 1) % ITEMS) === 0 ? nextSlice() : NOTHING);
}

/**
 * Does the work, waiting for each promise that it yields.
 * @param isAbandoned asked after each wait: if it returns true, nothing more is done, and the promise never settles.
 */
export function run<T>(steps: Steps<T>, isAbandoned?: () => boolean): Answer<T> {
  const iterator = steps[Symbol.iterator]() as Generator<Promise<unknown>, T, unknown>;
  const step = iterator.next();
  return step.done ? step.value : finish(iterator, step.value, isAbandoned);
}

async function finish<T>(
  iterator: Generator<Promise<unknown>, T, unknown>,
  first: Promise<unknown>,
  isAbandoned: (() => boolean) | undefined,
): Promise<T> {
  let step: IteratorResult<Promise<unknown>, T> = { done: false, value: first };
  while (!step.done) {
    let [answer, hasFailed]: [unknown, boolean] = [undefined, false];
    try {
      answer = await step.value;
    } catch (error) {
      [answer, hasFailed] = [error, true];
    }
    if (isAbandoned?.()) return new Promise<never>(() => undefined);
    step = hasFailed ? iterator.throw(answer) : iterator.next(answer);
  }
  return step.value;
}

/** Does the work at once. */
export function runNow<T>(steps: Steps<T>): T {
  const result = run(steps);
  if (result instanceof Promise) throw new Error('Synchronous work cannot wait');
  return result;
}
