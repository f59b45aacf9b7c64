/** The paths, or everything. */
export type Places = ReadonlySet<string> | 'all';

/** With more paths than this it is faster to check everything. */
const MAX_PLACES = 1_000;

/** The paths at which something may have happened since they were last taken; at the beginning everything. */
export class Touched {
  #places: Set<string> | 'all' = 'all';

  get isEmpty(): boolean {
    return this.#places !== 'all' && this.#places.size === 0;
  }

  /** @param path undefined: anywhere. */
  add(path?: string): void {
    if (path === undefined || (this.#places !== 'all' && this.#places.size >= MAX_PLACES))
      this.#places = 'all';
    else if (this.#places !== 'all') this.#places.add(path);
  }

  /** Returns the places, of which none is touched any more. */
  take(): Places {
    const places = this.#places;
    this.#places = new Set();
    return places;
  }
}
