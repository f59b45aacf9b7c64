/**
 * Work that is written once and done in either of two ways: at once, or waiting for promises. It is a generator that
 * yields each promise it waits for:
 *
 *     function* sizeOf(fd: number, calls: Calls): Steps<bigint> {
 *       const stat = yield* wait(calls.fstat(fd, { bigint: true })); // an answer, or a promise of it
 *       return stat.size;
 *     }
 *     await run(sizeOf(fd, calls)); // some calls go through the thread pool
 *     runNow(sizeOf(fd, synchronousCalls)); // nothing is yielded
 */
export type Steps<T> = Generator<Promise<unknown>, T, unknown>;

/** What a call returns: its answer, or a promise of it. */
export type Answer<T> = T | Promise<T>;

/** The answer, which may have to be waited for. */
export function* wait<T>(answer: Answer<T>): Steps<T> {
  return answer instanceof Promise ? ((yield answer) as T) : answer;
}

/** Does the work, waiting for each promise that it yields. */
export async function run<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (!step.done) {
    let answer: unknown;
    try {
      answer = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(answer);
  }
  return step.value;
}

/** Does the work at once. */
export function runNow<T>(steps: Steps<T>): T {
  const step = steps.next();
  if (step.done) return step.value;
  throw new Error('Synchronous work cannot wait');
}
