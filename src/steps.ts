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
 */
import type { FileSystem, FileSystemCalls } from './ports.js';

/** A call by name. */
export type Call = {
  [K in keyof FileSystemCalls]: [name: K, ...args: Parameters<FileSystemCalls[K]>];
}[keyof FileSystemCalls];

/** Work that yields calls and returns a `T`. */
export type Steps<T> = Generator<Call, T, unknown>;

/** One call as a step. */
export function* call<K extends keyof FileSystemCalls>(
  name: K,
  ...args: Parameters<FileSystemCalls[K]>
): Steps<ReturnType<FileSystemCalls[K]>> {
  return (yield [name, ...args] as unknown as Call) as ReturnType<FileSystemCalls[K]>;
}

/** Makes one call, blocking. */
export function makeCall([name, ...args]: Call, calls: FileSystemCalls): unknown {
  return (calls[name] as (...args: unknown[]) => unknown)(...args);
}

/**
 * Runs the steps now, each call blocking.
 * @param ask makes the calls; it may know the answer already.
 */
export function runSync<T>(steps: Steps<T>, calls: FileSystemCalls, ask = makeCall): T {
  let next = steps.next();
  while (!next.done) {
    let answer: unknown;
    try {
      answer = ask(next.value, calls);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next.value;
}

/** Runs the steps one after another through promises. */
export async function runAsync<T>(steps: Steps<T>, fs: FileSystem): Promise<T> {
  let next = steps.next();
  while (!next.done) {
    const [name, ...args] = next.value;
    let answer: unknown;
    try {
      answer = await (fs[name] as (...args: unknown[]) => Promise<unknown>)(...args);
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next(answer);
  }
  return next.value;
}
