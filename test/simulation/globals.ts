/** The first import of the bundle: replaces time, turns and chance before the library captures them. */
import * as time from './time.js';

/** Resolves when all promises have been continued: Node.js does that before the next callback of `nextTick`. */
export const settled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

/** Continues all promises after each of these steps. Returns whether there was any. */
export async function settledAfterEach(steps: Iterable<undefined>): Promise<boolean> {
  let isAny = false;
  for (const _ of steps) {
    isAny = true;
    await settled();
  }
  return isAny;
}

/** The next turn of the real event loop. */
const { setImmediate: realImmediate } = globalThis;
export const nextRealTurn = (): Promise<void> => new Promise((resolve) => realImmediate(resolve));

/** The real time, for the report of a run only. */
const { performance: realPerformance } = globalThis;
export const realNow = (): number => realPerformance.now();

let random: () => number = () => 0;

/** Chance for whatever takes it from `Math.random`. */
export function setRandom(source: () => number): void {
  random = source;
}

let user = 0;

/** The user of the process, for whatever asks `process.geteuid`. */
export function setUser(uid: number): void {
  user = uid;
}

class SimulatedDate extends Date {
  constructor(...args: [] | [number | string | Date]) {
    super(...((args.length === 0 ? [time.wallClock()] : args) as [number]));
  }
  static override now(): number {
    return time.wallClock();
  }
}

Object.assign(globalThis, {
  Date: SimulatedDate,
  setTimeout: time.setTimeout,
  clearTimeout: time.clearTimeout,
  setImmediate: time.setImmediate,
  clearImmediate: time.clearImmediate,
});
process.geteuid = () => user;
process.hrtime = Object.assign((): [number, number] => [0, 0], {
  bigint: () => {
    const ms = time.monotonic();
    const whole = Math.floor(ms);
    return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
  },
});
Math.random = () => random();
const randomUUID = (): string =>
  'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(random() * 16).toString(16));
Object.defineProperty(globalThis, 'crypto', { value: { randomUUID } });

// Most errors of a schedule are answers such as ENOENT, and a stack takes longer than the call.
Error.stackTraceLimit = 0;
