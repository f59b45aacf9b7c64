/** A number in [0, 1). */
export type Random = () => number;

/** The machine's own chance. Not for secrets. */
export const systemRandom: Random = () => Math.random();
