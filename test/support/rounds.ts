const isInFull = process.env['STRESS'] === '1';

/**
 * How often a test repeats what is left to chance or takes processor time: a few times in `npm test`, in full with
 * `STRESS=1`, as in `npm run test:stress`.
 */
export function rounds(usual: number, full: number): number {
  return isInFull ? full : usual;
}

/** One of every `share` items, in `npm test`, the first one being that of index `phase`; all of them with `STRESS=1`. */
export function some<T>(items: readonly T[], share: number, phase = 0): T[] {
  return isInFull ? [...items] : items.filter((_, index) => index % share === phase % share);
}
