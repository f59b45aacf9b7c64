/**
 * Explores a small case exhaustively: in a schedule in which nobody interrupts anybody, others act at one place. Each place is tried,
 * with each number of their steps.
 */
import { runSchedule, type Outcome, type Schedule } from './schedule.js';

/** More steps than the actors of such a schedule have. */
const MAX_STEPS = 60;

/**
 * @param first the first decisions, which say what is published.
 * @param ran is called after each schedule. Stops when it returns true.
 */
export async function explore(
  { kind, seed, given: first = [] }: Schedule,
  ran: (outcome: Outcome) => boolean,
): Promise<void> {
  const simplest = await runSchedule({ kind, seed, given: first });
  if (ran(simplest)) return;
  const places = simplest.choices.made.length;
  for (let place = first.length; place < places; place += 1) {
    for (let steps = 1; steps <= MAX_STEPS; steps += 1) {
      const given = [
        ...first,
        ...Array<number>(place - first.length).fill(0),
        ...Array<number>(steps).fill(1),
      ];
      const outcome = await runSchedule({ kind, seed, given });
      if (ran(outcome)) return;
      // The last steps found nobody who had anything left to do.
      if (outcome.choices.counts.length < given.length) break;
    }
  }
}
