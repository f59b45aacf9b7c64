/** A map by path that is copied when it first differs from an earlier one, and knows what was set in it. */
export class Draft<V> {
  readonly #same: (a: V, b: V) => boolean;
  readonly #set = new Set<string>();
  #map: ReadonlyMap<string, V>;
  #copy: Map<string, V> | undefined;

  constructor(same: (a: V, b: V) => boolean, previous: ReadonlyMap<string, V> = new Map<string, V>()) {
    this.#same = same;
    this.#map = previous;
  }

  /** What it holds now; the earlier map itself while nothing differs. */
  get map(): ReadonlyMap<string, V> {
    return this.#map;
  }

  set(key: string, value: V): void {
    this.#set.add(key);
    const known = this.#map.get(key);
    if (known === undefined || !this.#same(known, value)) this.#writable().set(key, value);
  }

  /** Removes what was not set: at the path and, if `below`, under it. `''` is above all others. */
  sweep(path: string, below: boolean): void {
    if (this.#map.has(path) && !this.#set.has(path)) this.#writable().delete(path);
    if (!below) return;
    const prefix = path === '' ? '' : `${path}/`;
    for (const key of this.#map.keys()) {
      if (key.startsWith(prefix) && !this.#set.has(key)) this.#writable().delete(key);
    }
  }

  #writable(): Map<string, V> {
    this.#copy ??= new Map(this.#map);
    this.#map = this.#copy;
    return this.#copy;
  }
}
