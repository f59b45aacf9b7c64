/**
 * Time and turns of the event loop as a schedule decides them. `globals.ts` puts these functions in the place of those of
 * Node.js before the library is loaded.
 */

/** The wall clock at the beginning of each schedule, epoch ms. */
const EPOCH = Date.UTC(2030, 0, 1);

/**
 * Schedules begin at multiples of this, so that what is done once an hour is done in each, and periods begin alike, also those
 * of 700 ms. A double has whole milliseconds in ns for 18 years: for 38,000 schedules.
 */
const APART_MS = 7_560_000;

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly isRef: () => boolean;
  readonly run: () => void;
}

let now = 0;
/** When this schedule began, monotonic ms. */
let began = 0;
let orders = 0;
let timers: Timer[] = [];
let immediates: { readonly id: number; readonly run: () => void }[] = [];

/** Begins a schedule. */
export function resetTime(): void {
  began = (Math.floor((began + now) / APART_MS) + 2) * APART_MS;
  now = 0;
  orders = 0;
  timers = [];
  immediates = [];
}

/** Ms since the schedule began. */
export const elapsed = (): number => now;

export const monotonic = (): number => began + now;

/** How far the wall clock has been set, by the ms since the schedule began. */
let setBy: (elapsed: number) => number = () => 0;

export function setWallClock(by: (elapsed: number) => number): void {
  setBy = by;
}

/** Epoch ms. */
export const wallClock = (): number => EPOCH + now + setBy(now);

/** Time goes on; nothing is run. */
export function advance(ms: number): void {
  now += ms;
}

/** When the next timer is due; `Infinity` if there is none. */
export function nextTimerAt(): number {
  return timers[0]?.at ?? Infinity;
}

/** How many timers keep the process alive. */
export const pendingTimers = (): number => timers.filter(({ isRef }) => isRef()).length;

/** The timers and immediates that are left. */
export const leftovers = (): number => timers.length + immediates.length;

/** Runs the timers that are due, each at its time. Node.js continues promises after each of them. */
export function* runTimers(): Generator<undefined> {
  // Those that are added meanwhile wait for the next turn.
  const last = orders;
  for (let first = timers[0]; first && first.at <= now && first.order <= last; first = timers[0]) {
    timers.shift();
    first.run();
    yield;
  }
}

/** Runs the immediates that are scheduled now, in the same way. */
export function* runImmediates(): Generator<undefined> {
  const last = orders;
  for (let first = immediates[0]; first && first.id <= last; first = immediates[0]) {
    immediates.shift();
    first.run();
    yield;
  }
}

class Handle {
  readonly id: number;
  #isRef = true;

  constructor(id: number) {
    this.id = id;
  }

  ref(): this {
    this.#isRef = true;
    return this;
  }
  unref(): this {
    this.#isRef = false;
    return this;
  }
  hasRef(): boolean {
    return this.#isRef;
  }
}

export function setTimeout(run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): Handle {
  const handle = new Handle((orders += 1));
  const at = now + Math.max(1, Math.ceil(ms));
  const timer: Timer = { at, order: handle.id, isRef: () => handle.hasRef(), run: () => run(...args) };
  const index = timers.findIndex((other) => other.at > at);
  timers.splice(index < 0 ? timers.length : index, 0, timer);
  return handle;
}

export function clearTimeout(handle: Handle | undefined): void {
  timers = timers.filter(({ order }) => order !== handle?.id);
}

export function setImmediate(run: (...args: unknown[]) => void, ...args: unknown[]): number {
  const id = (orders += 1);
  immediates.push({ id, run: () => run(...args) });
  return id;
}

export function clearImmediate(id: number): void {
  immediates = immediates.filter((each) => each.id !== id);
}
