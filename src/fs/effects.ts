/**
 * File system work written once and run in either of two ways: at once (a local file system answers in
 * microseconds), if need be in slices, or through the thread pool (a dead NFS server must not stop the event loop).
 *
 * A function of steps is a generator that yields the calls it wants made:
 *
 *     function* size(path: string): Effects<bigint> {
 *       return (yield* call('lstat', path)).size;
 *     }
 *     runSync(size(path), fs.sync);  await runAsync(size(path), fs);
 *
 * What is no call (a pause, the next chunk of a stream) is a step of its own, `wait`, which only the second way
 * can take. A call whose answer is needed only later can be begun ahead, with `begin`.
 */
import { nextTurn } from '../core/event-loop.js';
import type { FileSystem, FileSystemCalls } from '../core/file-system.js';

/** A call by name. */
export type Call = {
  [K in keyof FileSystemCalls]: [name: K, ...args: Parameters<FileSystemCalls[K]>];
}[keyof FileSystemCalls];

/** Something to wait for that is not a call. */
export type Wait = [name: 'wait', work: () => Promise<unknown>];

/** A call to be made while other steps are taken. */
export type Begin = [name: 'begin', call: Call];

/**
 * Effects that are taken for themselves. They give the same as with `yield*`, but what they yield does not pass through
 * all who called: where that is done for each of many small files, it takes a quarter of the time.
 */
export type Part = [name: 'part', steps: Effects<unknown>];

/** Work that yields calls and returns a `T`. */
export type Effects<T> = Generator<Call | Wait | Begin | Part, T, unknown>;

/** One call as a step. */
export function* call<K extends keyof FileSystemCalls>(
  name: K,
  ...args: Parameters<FileSystemCalls[K]>
): Effects<ReturnType<FileSystemCalls[K]>> {
  return (yield [name, ...args] as unknown as Call) as ReturnType<FileSystemCalls[K]>;
}

/** Waiting as a step. */
export function* wait<T>(work: () => Promise<T>): Effects<T> {
  return (yield ['wait', work]) as T;
}

/**
 * Begins a call and goes on. The answer is what the returned steps give, which must be run if it is something to
 * be closed. Run synchronously, the call is made here.
 */
export function* begin<K extends keyof FileSystemCalls>(
  name: K,
  ...args: Parameters<FileSystemCalls[K]>
): Effects<() => Effects<ReturnType<FileSystemCalls[K]>>> {
  type Answer = ReturnType<FileSystemCalls[K]>;
  const begun = (yield ['begin', [name, ...args] as unknown as Call]) as Promise<Answer> | (() => Answer);
  return function* () {
    return typeof begun === 'function' ? begun() : yield* wait(() => begun);
  };
}

/** Makes one call, blocking. */
export function makeCall(call: Call, calls: FileSystemCalls): unknown {
  // A rest pattern would walk the iterator, which costs a small file some percent.
  return (calls[call[0]] as (...args: unknown[]) => unknown)(...call.slice(1));
}

/**
 * Runs the steps now, each call blocking.
 * @param ask makes the calls; it may know the answer already.
 */
export function runSync<T>(steps: Effects<T>, calls: FileSystemCalls, ask = makeCall): T {
  return runStretch(steps, steps.next(), calls, ask, Infinity).value as T;
}

/** So many calls take two or three milliseconds; nobody else in the process should wait longer. */
const SLICE_CALLS = 500;

/** A part is a file: open, fstat, read, close. */
const PART_CALLS = 4;

/** The same, but after every so many calls the event loop has a turn. Few steps are taken in one stretch. */
export async function runSliced<T>(steps: Effects<T>, calls: FileSystemCalls, ask = makeCall): Promise<T> {
  let next = runStretch(steps, steps.next(), calls, ask, SLICE_CALLS);
  while (!next.done) {
    await nextTurn();
    next = runStretch(steps, next, calls, ask, SLICE_CALLS);
  }
  return next.value;
}

type Step<T> = ReturnType<Effects<T>['next']>;

/** Takes steps until that many calls are made, or none is left. */
function runStretch<T>(
  steps: Effects<T>,
  first: Step<T>,
  calls: FileSystemCalls,
  ask: typeof makeCall,
  count: number,
): Step<T> {
  let next = first;
  let made = 0;
  while (!next.done && made < count) {
    const step = next.value;
    made += step[0] === 'part' ? PART_CALLS : 1;
    let answer: unknown;
    try {
      if (step[0] === 'wait') throw new Error('Synchronous work cannot wait');
      if (step[0] === 'part') answer = runSync(step[1], calls, ask);
      else answer = step[0] === 'begin' ? outcomeNow(step[1], calls) : ask(step, calls);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next;
}

/**
 * Runs the steps one after another through promises.
 *
 * @param atOnce the calls that are made without the thread pool, if the file system can; after every `SLICE_CALLS` of
 * them the event loop has a turn.
 */
export async function runAsync<T>(
  steps: Effects<T>,
  fs: FileSystem,
  atOnce: (call: Call) => boolean = never,
): Promise<T> {
  let next = steps.next();
  let made = 0;
  while (!next.done) {
    const step = next.value;
    let answer: unknown;
    try {
      if (step[0] === 'wait') answer = await step[1]();
      else if (step[0] === 'part') answer = await runAsync(step[1], fs, atOnce);
      else if (step[0] === 'begin') {
        answer = fs.sync && atOnce(step[1]) ? outcomeNow(step[1], fs.sync) : callLater(step[1], fs);
      } else if (fs.sync && atOnce(step)) {
        if ((made += 1) % SLICE_CALLS === 0) await nextTurn();
        answer = makeCall(step, fs.sync);
      } else answer = await callSoon(step, fs);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next.value;
}

const never = (): boolean => false;

/** The answer or the error, to be had later. */
function outcomeNow(call: Call, calls: FileSystemCalls): () => unknown {
  try {
    const answer = makeCall(call, calls);
    return () => answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function callSoon([name, ...args]: Call, fs: FileSystem): Promise<unknown> {
  return (fs[name] as (...args: unknown[]) => Promise<unknown>)(...args);
}

function callLater(call: Call, fs: FileSystem): Promise<unknown> {
  const answer = callSoon(call, fs);
  // Nobody may be there to hear it when the steps end before they need it.
  answer.catch(() => undefined);
  return answer;
}
