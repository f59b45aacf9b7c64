/**
 * Keys that have entered a volume: a file of its own has become a link into it. That is a change of its own, so a swap that
 * comes after it may be found before it, by a look that has visited the file before.
 */
import { NOTHING, type History } from './history.js';
import type { Report } from './invariants.js';

/**
 * The keys that were files of their own since then, and that no report has shown in this unit since.
 * @param before the report before this one, if there is one.
 */
export function enteredKeys(
  history: History,
  unit: string,
  since: number,
  report: Report,
  before?: Report,
): readonly string[] {
  const toldBefore = before?.units.get(unit) ?? NOTHING;
  return [...history.units].flatMap((own) => {
    const file = history.of(own).findLast(({ text, to }) => text !== NOTHING && to >= since);
    if (own === unit || !file) return [];
    const key = file.text.slice(0, file.text.indexOf('='));
    return report.units.has(own) || without(toldBefore, key) === toldBefore ? [key] : [];
  });
}

/** Whether a look that has seen this text of a unit may have missed one of these keys. */
export const isWithout = (found: string, text: string, keys: readonly string[]): boolean =>
  keys.some((key) => without(text, key) === found);

function without(text: string, key: string): string {
  const [before, rest] = ` ${text}`.split(` ${key}=`, 2);
  return rest === undefined ? text : `${before} ${rest.slice(rest.indexOf(' ') + 1)}`.slice(1);
}
