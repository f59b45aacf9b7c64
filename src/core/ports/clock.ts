/** A scheduled callback. */
export interface Scheduled {
  /** Cancels the callback; no effect if it has already run or was canceled. */
  cancel(): void;
}

/** The only source of time in the library. */
export interface Clock {
  /** Wall clock, epoch ms. May jump in either direction. */
  now(): number;
  /** Monotonic clock, ms since an arbitrary point in time. */
  monotonic(): number;
  /**
   * Runs `callback` once after `delayMs` (any finite length; below 0 counts as 0). With `ref: false` the wait
   * does not keep the process alive.
   */
  schedule(callback: () => void, delayMs: number, options?: { readonly ref?: boolean }): Scheduled;
}

// The real functions, captured when the library is loaded, so that fake timers installed later have no effect on it.
const { setTimeout, clearTimeout, Date } = globalThis;
/** Instead of `performance`, whose first use loads eight modules of Node.js. */
const { hrtime } = process;

/** With a longer delay `setTimeout` would fire immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the system. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(hrtime.bigint()) / 1e6,
  schedule(callback, delayMs, { ref = true } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (remainingMs: number): void => {
      const sliceMs = Math.min(remainingMs, LONGEST_TIMER_MS);
      timer = setTimeout(() => (remainingMs > sliceMs ? arm(remainingMs - sliceMs) : callback()), sliceMs);
      if (!ref) timer.unref();
    };
    arm(Math.max(0, delayMs));
    return { cancel: () => clearTimeout(timer) };
  },
};

/**
 * Epoch ms of an RFC 3339 timestamp as written by the API server, of a `Date` or of epoch ms; NaN for anything
 * else.
 */
export function parseTimestamp(value: unknown): number {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value;
  // `Date.parse` alone would read "1" as a year, and a date without a time zone as local time.
  const isTimestamp = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/i.test(value);
  return isTimestamp ? Date.parse(value) : Number.NaN;
}

/** Epoch ms of a date as in `X509Certificate` (`Sep  3 21:40:37 2296 GMT`) or HTTP; NaN for anything else. */
export const parseGmtDate = (text: unknown): number =>
  typeof text === 'string' && text.endsWith(' GMT') ? Date.parse(text) : NaN;

/** A date as epoch ms for JSON, which has no Infinity; null if it is unknown or never comes. */
export const dateOrNull = (epochMs: number | undefined): number | null =>
  epochMs !== undefined && Number.isFinite(epochMs) ? epochMs : null;

/** `epochMs` in ISO 8601, UTC, for messages and names. */
export const isoTime = (epochMs: number): string => new Date(epochMs).toISOString();

/** A duration for messages, rounded to a suitable unit: `90 s`, `49 min`, `3 h`, `2 d`; never negative. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** A time in the JSON of Kubernetes: RFC 3339 in whole seconds. */
export const kubernetesTime = (epochMs: number): string => `${isoTime(epochMs).slice(0, 19)}Z`;
