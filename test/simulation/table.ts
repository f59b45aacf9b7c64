/** Prints who did what in a schedule. */
import type { Entry } from './world.js';

/** One line for each step, in a column for each of those who act. */
export function tableOf(trace: readonly Entry[]): string {
  const all = [...new Set(trace.map(({ who }) => who))];
  const lines = trace.map(
    ({ ms, who, what }) => `${ms.toFixed(1).padStart(8)}  ${'· '.repeat(all.indexOf(who))}${who}: ${what}`,
  );
  return lines.join('\n');
}
