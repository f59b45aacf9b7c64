/**
 * Visits the entries of a changing map, a few at a time, round after round. An entry that is in the
 * map from the beginning of a round until its turn comes is visited in this round; one that is added meanwhile, in the
 * next.
 */
export class Rotation<V> {
  #round: Iterator<string, undefined> | undefined;

  /** The next entries: at most `count`, and none twice. */
  *next(map: ReadonlyMap<string, V>, count: number): Iterable<[key: string, value: V]> {
    if (map.size <= count) {
      this.#round = undefined;
      yield* map;
      return;
    }
    for (let turns = 0; turns < count; turns += 1) {
      this.#round ??= map.keys();
      const next = this.#round.next();
      if (next.done) {
        this.#round = undefined;
        return;
      }
      const key = next.value;
      const value = map.get(key);
      if (value !== undefined) yield [key, value];
    }
  }
}
