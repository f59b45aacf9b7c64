/**
 * The clocks, by seed. They take no decisions, so that a seed decides the same as before there were clocks.
 *
 * | the clock of            | is                                                             |
 * |-------------------------|----------------------------------------------------------------|
 * | the file system         | ours, or that of a file server: behind, ahead, and sometimes set |
 * | the process             | sometimes set, with that of the file system                    |
 */
import { randomOf } from './choices.js';
import { setWallClock } from './time.js';

/** How far the clock of the file system is ahead of ours. */
const SKEWS_MS = [0, -3_000, 0, 0, -200, -3_600_000, 3_000, 3_600_000];

/** By how much a clock is set. Not a number of ticks, so that it shows the same time as before once in a long while only. */
const STEPS_MS = [-5_000.017, -100.017, 100.017, 5_000.017, 3_600_000.017];

/** Within this time, ms. */
const LATEST_MS = 2_000;

/** The difference between the clocks, by the ms since the schedule began. Sets ours, too. */
export function skewOf(seed: number): (elapsed: number) => number {
  const skewMs = SKEWS_MS[seed % SKEWS_MS.length] ?? 0;
  const random = randomOf(seed ^ 0xc10c);
  const which = Math.floor(random() * 6);
  const at = random() * LATEST_MS;
  const stepMs = STEPS_MS[Math.floor(random() * STEPS_MS.length)] ?? 0;
  const stepped = (elapsed: number): number => (elapsed >= at ? stepMs : 0);
  setWallClock(which === 1 ? stepped : () => 0);
  return which === 0 ? (elapsed) => skewMs + stepped(elapsed) : () => skewMs;
}
