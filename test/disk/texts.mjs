/** What is written says by itself how it was written, as which one of all, and whether it is whole. */

/**
 * @param {'v' | 'r' | 'p'} how in a revision of the volume, renamed into place, or written in place.
 * @param {number} number of all that one actor writes.
 */
export function textOf(how, number, random) {
  const length = Math.floor(random() * 40);
  return `${how}@${number}:${length}:${'x'.repeat(length)}:end`;
}

/** What a text says; undefined if it is not whole. */
export function parsed(text) {
  const [, how, number, length, filler] = /^([vrp])@(\d+):(\d+):(x*):end$/.exec(text) ?? [];
  if (how === undefined || filler.length !== Number(length)) return undefined;
  return { how, number: Number(number) };
}

/** Random numbers in [0, 1) from a seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
