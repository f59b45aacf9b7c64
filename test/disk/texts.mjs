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
