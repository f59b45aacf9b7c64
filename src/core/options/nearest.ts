/** Longer names are not typed by hand. */
const MAX_LENGTH = 100;

/**
 * The name among the candidates that differs from `name` in the fewest letters, and in how many; undefined if none is
 * near.
 */
export function nearest(
  name: string,
  candidates: Iterable<string>,
): { readonly name: string; readonly distance: number } | undefined {
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const limit = best ? best.distance - 1 : Math.max(2, Math.floor(name.length / 3));
    const distance = distanceBetween(name, candidate, limit);
    if (distance <= limit) best = { name: candidate, distance };
  }
  return best;
}

/** How many letters have to be changed, added or left out (Levenshtein); `Infinity` if more than the limit. */
function distanceBetween(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) > limit || one.length > MAX_LENGTH) return Infinity;
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    if (Math.min(...next) > limit) return Infinity;
    row = next;
  }
  return row[other.length] ?? Infinity;
}
