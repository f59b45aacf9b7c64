/**
 * The clocks, by seed. They take no decisions, so that a seed decides the same as before there were clocks.
 *
 * | the clock of            | is                                                             |
 * |-------------------------|----------------------------------------------------------------|
 * | the file system         | ours, or that of a file server: behind, ahead, and sometimes set |
 * | the process             | sometimes set, mostly with that of the file system             |
 */
import { randomOf } from '../support/seeded-random.mjs';
import { setWallClock } from './time.js';

/** How far the clock of the file system is ahead of ours. */
const SKEWS_MS = [0, -3_000, 0, 0, -200, -3_600_000, 3_000, 3_600_000];

/** By how much a clock is set. Not a number of ticks, so that it shows the same time as before once in a long while only. */
const STEPS_MS = [-5_000.017, -100.017, 100.017, 5_000.017, 3_600_000.017];

/** Within this time, ms. */
const LATEST_MS = 2_000;

/** A server in a wrong time zone, or with a wrong date. */
const FAR_MS = [8, -8, 23, -23, 25, -25, 24 * 400, -24 * 4_000].map((hours) => hours * 3_600_000);

const DAY_MS = 24 * 3_600_000;

/** Whether clocks that differ by so much, ms, say nothing about each other. */
export const areFarApart = (ms: number): boolean => Math.abs(ms) >= DAY_MS - LATEST_MS;

/** The clocks of a schedule. */
export interface Clocks {
  /** The difference between the clocks, by the ms since the schedule began. */
  readonly skewAt: (elapsed: number) => number;
  /** Whether they differ, at some time, by a day or more: what a program finds at its start counts as old then. */
  readonly areFar: boolean;
  /** Whether that of the file system is set back, so that it shows a time twice. */
  readonly isSetBack: boolean;
}

/**
 * Sets ours, too.
 * @param areWriters then that of a file system is never set far: what they are writing would be old at once.
 */
export function clocksOf(seed: number, areWriters: boolean): Clocks {
  const isFar = randomOf(seed ^ 0xff3)() < 0.12;
  const skewMs = (isFar ? FAR_MS : SKEWS_MS)[seed % SKEWS_MS.length] ?? 0;
  const random = randomOf(seed ^ 0xc10c);
  const which = Math.floor(random() * (isFar ? 4 : 6));
  const at = random() * LATEST_MS;
  const step = random();
  const steps = isFar ? FAR_MS.map((ms) => ms + 0.017) : STEPS_MS;
  const drawn = steps[Math.floor(step * steps.length)] ?? 0;
  const isOnlyOurs = isFar && which === 2;
  // Nobody waits for hours until a link is older than what is written behind it.
  const farMs = areWriters ? 0 : Math.abs(drawn);
  const stepMs = isFar && !isOnlyOurs ? farMs : drawn;
  const stepped = (elapsed: number): number => (elapsed >= at ? stepMs : 0);
  setWallClock(which === 1 || isOnlyOurs ? stepped : () => 0);
  const differences = [0, stepMs, -stepMs].map((by) => skewMs + by);
  return {
    skewAt: (elapsed) => skewMs + (which === 0 ? stepped(elapsed) : isOnlyOurs ? -stepped(elapsed) : 0),
    areFar: isFar && differences.some(areFarApart),
    isSetBack: stepMs < 0 && which < 2,
  };
}
