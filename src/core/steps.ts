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

export type Steps<T> = Iterable<Promise<unknown>, T, unknown>;

/** What a call returns: its answer, or a promise of it. */
export type Answer<T> = T | Promise<T>;

/** Work that is done: its iterator and its only result. A generator for each answer would take longer than the call. */
class Done<T> {
  readonly done = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): this {
    return this;
  }
}

const NOTHING: Steps<void> = new Done(undefined);

/** The answer, which may have to be waited for. */
export function wait<T>(answer: Answer<T>): Steps<T> {
  return answer instanceof Promise ? later(answer) : new Done(answer);
}

function* later<T>(answer: Promise<T>): Steps<T> {
  return (yield answer) as T;
}

/** Goes on in the next turn of the event loop if the budget of this one is spent. */
export function nextSlice(): Steps<void> {
  startTurnBudget();
  return isTurnSpent() ? later(nextTurn()) : NOTHING;
}

/**
 * Does the work, waiting for each promise that it yields.
 * @param isAbandoned asked after each wait: if it returns true, nothing more is done, and the promise never settles.
 */
export function run<T>(steps: Steps<T>, isAbandoned?: () => boolean): Answer<T> {
  const generator = steps[Symbol.iterator]() as Generator<Promise<unknown>, T, unknown>;
  const step = generator.next();
  return step.done ? step.value : finish(generator, step.value, isAbandoned);
}

async function finish<T>(
  generator: Generator<Promise<unknown>, T, unknown>,
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
    step = hasFailed ? generator.throw(answer) : generator.next(answer);
  }
  return step.value;
}

/** Does the work at once. */
export function runNow<T>(steps: Steps<T>): T {
  const result = run(steps);
  if (result instanceof Promise) throw new Error('Synchronous work cannot wait');
  return result;
}
