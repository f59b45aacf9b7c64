import { LONG_PAUSE, type Effects } from './effects.js';

/** Sorting so many keys, or merging twice as many, takes a millisecond or two. */
const PORTION = 2_000;

/** The keys, sorted in portions. */
export function* sortedKeys(keys: Iterable<string>): Effects<readonly string[]> {
  let runs: string[][] = [];
  let run: string[] = [];
  for (const key of keys) {
    run.push(key);
    if (run.length < PORTION) continue;
    runs.push(run.sort());
    run = [];
    yield LONG_PAUSE;
  }
  runs.push(run.sort());
  while (runs.length > 1) {
    const longer: string[][] = [];
    for (let first = 0; first < runs.length; first += 2) {
      longer.push(yield* merged(runs[first] ?? [], runs[first + 1] ?? []));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

function* merged(one: readonly string[], other: readonly string[]): Effects<string[]> {
  const keys: string[] = [];
  for (let [first, second] = [0, 0]; first < one.length || second < other.length;) {
    const [a, b] = [one[first], other[second]];
    if (a !== undefined && (b === undefined || a < b)) {
      keys.push(a);
      first += 1;
    } else if (b !== undefined) {
      keys.push(b);
      second += 1;
    }
    if (keys.length % (2 * PORTION) === 0) yield LONG_PAUSE;
  }
  return keys;
}
