/** Finds a simpler schedule that violates the same invariant: decisions are left out or become 0. */
import { runSchedule, type Schedule } from './schedule.js';

/** How many schedules are tried. */
const MAX_TRIES = 3_000;

export async function shrink(
  { kind, seed }: Schedule,
  made: readonly number[],
  invariant: number,
): Promise<number[]> {
  let best = [...made];
  let tries = 0;
  const isAsBad = async (given: readonly number[]): Promise<boolean> => {
    tries += 1;
    const { violation, choices } = await runSchedule({ kind, seed, given });
    if (violation?.invariant !== invariant) return false;
    best = trimmed(choices.made);
    return true;
  };
  for (let size = Math.ceil(best.length / 2), didShrink = false; tries < MAX_TRIES;) {
    for (let at = 0; at < best.length && tries < MAX_TRIES; at += size) {
      const [before, part, after] = [best.slice(0, at), best.slice(at, at + size), best.slice(at + size)];
      if (await isAsBad([...before, ...after])) {
        didShrink = true;
        at -= size;
      } else if (part.some((choice) => choice > 0)) {
        if (await isAsBad([...before, ...part.map(() => 0), ...after])) didShrink = true;
        else if (size === 1 && (part[0] ?? 0) > 1 && (await isAsBad([...before, 1, ...after])))
          didShrink = true;
      }
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (didShrink) didShrink = false;
    else break;
  }
  return best;
}

function trimmed(made: readonly number[]): number[] {
  const last = made.findLastIndex((choice) => choice > 0);
  return made.slice(0, last + 1);
}
