/**
 * Explores small cases exhaustively.
 *
 * `explore`: in a schedule in which nobody interrupts anybody, others act at one place, or at several. Each place is
 * tried, with each number of their steps. `each`: each value of the decisions that say what happens.
 */
import { runSchedule, type Outcome, type Schedule } from './schedule.js';

/** More steps than the actors of such a schedule have. */
const MAX_STEPS = 60;

/** Is called after each schedule. Ends the exploration when it returns true. */
type Ran = (outcome: Outcome) => boolean;

/**
 * @param first the first decisions, which say what is published.
 * @param interruptions at how many places others act.
 */
export async function explore(
  { kind, seed, given: first = [] }: Schedule,
  interruptions: number,
  ran: Ran,
): Promise<boolean> {
  const simplest = await runSchedule({ kind, seed, given: first });
  if (ran(simplest)) return true;
  return interrupt({ kind, seed, given: first }, simplest, interruptions, ran);
}

/** Others act somewhere after the decisions that are given. Returns whether this ended the exploration. */
async function interrupt(
  { kind, seed, given: before = [] }: Schedule,
  { choices }: Outcome,
  interruptions: number,
  ran: Ran,
): Promise<boolean> {
  if (interruptions === 0) return false;
  const places = choices.made.length;
  for (let place = before.length; place < places; place += 1) {
    for (let steps = 1; steps <= MAX_STEPS; steps += 1) {
      const given = [
        ...before,
        ...Array<number>(place - before.length).fill(0),
        ...Array<number>(steps).fill(1),
      ];
      const outcome = await runSchedule({ kind, seed, given });
      if (ran(outcome)) return true;
      // The last steps found nobody who had anything left to do.
      if (outcome.choices.counts.length < given.length) break;
      // The next place is not the one right after it, where the same would go on.
      if (await interrupt({ kind, seed, given: [...given, 0] }, outcome, interruptions - 1, ran)) return true;
    }
  }
  return false;
}

/** @param pattern the first decisions; `undefined`: each value. The rest is 0. */
export async function each(
  kind: string,
  seed: number,
  pattern: readonly (number | undefined)[],
  ran: Ran,
): Promise<boolean> {
  const given = pattern.map((value) => value ?? 0);
  for (;;) {
    const outcome = await runSchedule({ kind, seed, given });
    if (ran(outcome)) return true;
    const { counts } = outcome.choices;
    const next = pattern.findLastIndex(
      (value, at) => value === undefined && (given[at] ?? 0) + 1 < (counts[at] ?? 0),
    );
    if (next < 0) return false;
    given[next] = (given[next] ?? 0) + 1;
    for (let at = next + 1; at < pattern.length; at += 1) given[at] = pattern[at] ?? 0;
  }
}
