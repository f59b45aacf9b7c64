/**
 * File system work written once and run in either of two ways: at once (a local file system answers in
 * microseconds) or through the thread pool (a dead NFS server must not stop the event loop).
 *
 * A function of steps is a generator that yields the calls it wants made:
 *
 *     function* size(path: string): Steps<bigint> {
 *       return (yield* call('lstat', path)).size;
 *     }
 *     runSync(size(path), fs.sync);  await runAsync(size(path), fs);
 *
 * What is neither (a pause, the next chunk of a stream) is a step of its own, `wait`, which only the second way
 * can take.
 */
import type { FileSystem, FileSystemCalls } from './ports.js';

/** A call by name. */
export type Call = {
  [K in keyof FileSystemCalls]: [name: K, ...args: Parameters<FileSystemCalls[K]>];
}[keyof FileSystemCalls];

/** Something to wait for that is not a call. */
export type Wait = [name: 'wait', work: () => Promise<unknown>];

/** Work that yields calls and returns a `T`. */
export type Steps<T> = Generator<Call | Wait, T, unknown>;

/** One call as a step. */
export function* call<K extends keyof FileSystemCalls>(
  name: K,
  ...args: Parameters<FileSystemCalls[K]>
): Steps<ReturnType<FileSystemCalls[K]>> {
  return (yield [name, ...args] as unknown as Call) as ReturnType<FileSystemCalls[K]>;
}

/** Waiting as a step. */
export function* wait<T>(work: () => Promise<T>): Steps<T> {
  return (yield ['wait', work]) as T;
}

/** Runs the steps now, each call blocking. */
export function runSync<T>(steps: Steps<T>, calls: FileSystemCalls): T {
  let next = steps.next();
  while (!next.done) {
    let answer: unknown;
    try {
      answer = callNow(next.value, calls);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next.value;
}

/**
 * Runs the steps one after another through promises.
 *
 * @param atOnce the calls that are made without the thread pool, if the file system can.
 */
export async function runAsync<T>(
  steps: Steps<T>,
  fs: FileSystem,
  atOnce?: (call: Call) => boolean,
): Promise<T> {
  let next = steps.next();
  while (!next.done) {
    const step = next.value;
    let answer: unknown;
    try {
      if (step[0] === 'wait') answer = await step[1]();
      else if (fs.sync && atOnce?.(step)) answer = callNow(step, fs.sync);
      else {
        const [name, ...args] = step;
        answer = await (fs[name] as (...args: unknown[]) => Promise<unknown>)(...args);
      }
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next.value;
}

function callNow(step: Call | Wait, calls: FileSystemCalls): unknown {
  if (step[0] === 'wait') throw new Error('Synchronous work cannot wait');
  const [name, ...args] = step;
  return (calls[name] as (...args: unknown[]) => unknown)(...args);
}
