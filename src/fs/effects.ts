/**
 * File system work written once and run in either of two ways: at once (a local file system answers in
 * microseconds), if need be in slices, or through the thread pool (a dead NFS server must not stop the event loop).
 *
 * Effects are a generator that yields the calls it wants made:
 *
 *     function* size(path: string): Effects<bigint> {
 *       return (yield* call('lstat', path)).size;
 *     }
 *     runSync(size(path), fs.sync);  await runAsync(size(path), fs);
 *
 * `wait` is for what is not a call (a pause, the next chunk of a stream), and works through promises only. `freshly` makes
 * calls whose answers other checks in the same turn may already have.
 */
import { withErrno } from '../core/errno.js';
import { nextTurn } from '../core/event-loop.js';
import type { FileSystem, FileSystemCalls } from '../core/file-system.js';

/** A call by name. */
export type Call = {
  [K in keyof FileSystemCalls]: [name: K, ...args: Parameters<FileSystemCalls[K]>];
}[keyof FileSystemCalls];

/** Something to wait for that is not a call. */
type Wait = [name: 'wait', work: () => Promise<unknown>];

/**
 * Work that makes blocking calls itself, since a generator for each of many small files would take most of the time. It
 * catches what the calls throw, and returns its cost, in calls. `runAsync` does not do it, and answers 0.
 */
type Direct = [name: 'direct', work: (calls: FileSystemCalls) => number];

/** Effects that run without a pause, and of which each call reaches the disk: no answer is shared with another check. */
type Fresh = [name: 'fresh', effects: Effects<unknown>];

/** A slice may end here: what was done since the last call took about as long as this many calls. */
type Pause = [name: 'pause', cost: number];

/** A pause after work that took about as long as a call. */
export const PAUSE: Pause = ['pause', 1];

/** This many calls take two or three milliseconds; the rest of the process should not wait longer. */
const SLICE_COST = 500;

/** A pause after work that took as long as a slice: the next one begins here. */
export const LONG_PAUSE: Pause = ['pause', SLICE_COST];

/**
 * Tasks that do not depend on each other, and do not throw. `runAsync` may run several of them at the same time, but the
 * calls of each one after another.
 */
type Together = [name: 'together', tasks: readonly (() => Effects<void>)[]];

type Effect = Call | Wait | Direct | Fresh | Pause | Together;

/** Work that yields calls and returns a `T`. */
export type Effects<T> = Generator<Effect, T, unknown>;

/** One call as effects. */
export function* call<K extends keyof FileSystemCalls>(
  name: K,
  ...args: Parameters<FileSystemCalls[K]>
): Effects<ReturnType<FileSystemCalls[K]>> {
  return (yield [name, ...args] as unknown as Call) as ReturnType<FileSystemCalls[K]>;
}

/**
 * A proof that something is still as it was found. Answers shared with other checks would compare what was found
 * with itself, so each call reaches the disk.
 */
export function* freshly<T>(effects: Effects<T>): Effects<T> {
  return (yield ['fresh', effects]) as T;
}

/** Tasks that do not depend on each other, and do not throw, as effects. */
export function* together(tasks: readonly (() => Effects<void>)[]): Effects<void> {
  yield ['together', tasks];
}

/** A wait as effects. */
export function* wait<T>(work: () => Promise<T>): Effects<T> {
  return (yield ['wait', work]) as T;
}

/** Work that makes blocking calls itself, as effects: its cost, or 0 if it was not done. See `Direct`. */
export function* direct(work: (calls: FileSystemCalls) => number): Effects<number> {
  return (yield ['direct', work]) as number;
}

/**
 * Makes a blocking call, or returns a known answer.
 * @param isFresh the call must be made.
 */
export type Ask = (call: Call, calls: FileSystemCalls, isFresh: boolean) => unknown;

type AnyCall = (...args: unknown[]) => unknown;

/** Makes one blocking call. */
export function makeCall(call: Call, calls: FileSystemCalls): unknown {
  return apply(calls as unknown as Record<string, AnyCall>, call);
}

/** A spread would use the iterator, which costs a few percent of a small file. No call has more arguments. */
function apply(calls: Readonly<Record<string, AnyCall>>, call: readonly unknown[]): unknown {
  const name = call[0] as string;
  switch (call.length) {
    case 2:
      return calls[name]?.(call[1]);
    case 3:
      return calls[name]?.(call[1], call[2]);
    case 4:
      return calls[name]?.(call[1], call[2], call[3]);
    default:
      return calls[name]?.(...call.slice(1));
  }
}

/** Runs effects now, with blocking calls. */
export function runSync<T>(effects: Effects<T>, calls: FileSystemCalls, ask: Ask = makeCall): T {
  const stretch = new Stretch(calls, ask, Infinity);
  return stretch.run(effects, effects.next()).value as T;
}

/** The same in slices: between them the event loop has a turn. */
export async function runSliced<T>(
  effects: Effects<T>,
  calls: FileSystemCalls,
  ask: Ask = makeCall,
): Promise<T> {
  let next = new Stretch(calls, ask, SLICE_COST).run(effects, effects.next());
  while (!next.done) {
    await nextTurn();
    next = new Stretch(calls, ask, SLICE_COST).run(effects, next);
  }
  return next.value;
}

/**
 * Runs effects that only compute; at each pause the event loop has a turn. Returns true if they ran to their end, false if
 * `hasEnded` stopped them. Without a pause the result is not a promise, so that what follows runs in the same turn.
 */
export function runPausing(effects: Effects<void>, hasEnded: () => boolean): true | Promise<boolean> {
  return effects.next().done ? true : resume(effects, hasEnded);
}

async function resume(effects: Effects<void>, hasEnded: () => boolean): Promise<boolean> {
  do {
    await nextTurn();
    if (hasEnded()) return false;
  } while (!effects.next().done);
  return true;
}

/** The cost of reading a small file directly, and of what follows for it, with this many bytes. */
export function costOfReading(bytes: number): number {
  return 3 + bytes / BYTES_PER_CALL;
}

/** Reading this many bytes takes as long as a call. */
const BYTES_PER_CALL = 8_192;

/** Listing this many entries takes as long as a call. */
const ENTRIES_PER_CALL = 8;

type Step<T> = ReturnType<Effects<T>['next']>;

/** Runs effects without a pause until they have cost this many calls. */
class Stretch {
  readonly #calls: FileSystemCalls;
  readonly #ask: Ask;
  #left: number;

  constructor(calls: FileSystemCalls, ask: Ask, cost: number) {
    this.#calls = calls;
    this.#ask = ask;
    this.#left = cost;
  }

  run<T>(effects: Effects<T>, first: Step<T>): Step<T> {
    return this.#run(effects, first, 0, false);
  }

  /** @param until the remaining budget; parts and proofs run to their end. */
  #run<T>(effects: Effects<T>, first: Step<T>, until: number, isFresh: boolean): Step<T> {
    let next = first;
    while (!next.done && this.#left > until) {
      let answer: unknown;
      try {
        answer = this.#take(next.value, isFresh);
      } catch (error) {
        next = effects.throw(withErrno(error));
        continue;
      }
      next = effects.next(answer);
    }
    return next;
  }

  #take(step: Effect, isFresh: boolean): unknown {
    if (step[0] === 'direct') {
      const cost = step[1](this.#calls);
      this.#left -= cost;
      return cost;
    }
    if (step[0] === 'fresh') return this.#run(step[1], step[1].next(), -Infinity, true).value;
    if (step[0] === 'wait') throw new Error('Synchronous work cannot wait');
    if (step[0] === 'together') {
      for (const task of step[1]) {
        const effects = task();
        this.#run(effects, effects.next(), -Infinity, isFresh);
      }
      return undefined;
    }
    if (step[0] === 'pause') {
      this.#left -= step[1];
      return undefined;
    }
    const answer = this.#ask(step, this.#calls, isFresh);
    this.#left -= costOf(step[0], answer);
    return answer;
  }
}

/** The cost in calls of the usual length. */
function costOf(name: Call[0], answer: unknown): number {
  if (name === 'read') return 1 + (answer as number) / BYTES_PER_CALL;
  if (name === 'scandir' || name === 'readEntries')
    return 1 + (answer as unknown[]).length / ENTRIES_PER_CALL;
  return 1;
}

/**
 * Runs effects one call after another through promises.
 *
 * @param atOnce the calls that are made without the thread pool, if the file system can; after every slice of them
 * the event loop has a turn.
 * @param width how many tasks of `together` run at the same time.
 */
export function runAsync<T>(
  effects: Effects<T>,
  fs: FileSystem,
  atOnce: (call: Call) => boolean = never,
  width: () => number = one,
): Promise<T> {
  return run(effects, { fs, atOnce, cost: 0 }, width);
}

/** What all parts of asynchronous work have in common. */
interface AsyncRun {
  readonly fs: FileSystem;
  readonly atOnce: (call: Call) => boolean;
  /** The cost of the calls since the event loop had a turn. */
  cost: number;
}

async function run<T>(effects: Effects<T>, common: AsyncRun, width: () => number): Promise<T> {
  const { fs, atOnce } = common;
  let next = effects.next();
  while (!next.done) {
    const step = next.value;
    let answer: unknown;
    try {
      if (common.cost >= SLICE_COST) {
        common.cost = 0;
        await nextTurn();
      }
      if (step[0] === 'pause') common.cost += step[1];
      else if (step[0] === 'wait') answer = await step[1]();
      else if (step[0] === 'direct') answer = 0;
      else if (step[0] === 'fresh') answer = await run(step[1], common, width);
      else if (step[0] === 'together') await runTogether(step[1], common, width());
      else if (fs.sync && atOnce(step)) {
        answer = makeCall(step, fs.sync);
        common.cost += costOf(step[0], answer);
      } else answer = await callSoon(step, fs);
    } catch (error) {
      next = effects.throw(withErrno(error));
      continue;
    }
    next = effects.next(answer);
  }
  return next.value;
}

async function runTogether(
  tasks: readonly (() => Effects<void>)[],
  common: AsyncRun,
  width: number,
): Promise<void> {
  const left = tasks.values();
  const runSome = async (): Promise<void> => {
    for (const task of left) await run(task(), common, one);
  };
  await Promise.all(Array.from({ length: width }, runSome));
}

const never = (): boolean => false;

const one = (): number => 1;

function callSoon(call: Call, fs: FileSystem): Promise<unknown> {
  return apply(fs as unknown as Record<string, AnyCall>, call) as Promise<unknown>;
}
