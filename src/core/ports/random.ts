/** A number in [0, 1). */
export type Random = () => number;

/** `Math.random`; not cryptographically secure. */
export const systemRandom: Random = () => Math.random();
