import { PersistentMap } from '../persistent-map.js';

/** A map by path that is made from an earlier one, and knows what was set in it. */
export class Draft<V> {
  readonly #same: (a: V, b: V) => boolean;
  readonly #before: PersistentMap<V>;
  /** What differs from before; undefined: removed. */
  readonly #changes = new Map<string, V | undefined>();
  readonly #set = new Set<string>();

  constructor(same: (a: V, b: V) => boolean, before: PersistentMap<V> = PersistentMap.empty()) {
    this.#same = same;
    this.#before = before;
  }

  get(key: string): V | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#before.get(key);
  }

  set(key: string, value: V): void {
    this.#set.add(key);
    const known = this.get(key);
    if (known === undefined || !this.#same(known, value)) this.#changes.set(key, value);
  }

  /** Removes what was not set: at the path and, if `below`, under it. `''` is above all others. */
  sweep(path: string, below: boolean): void {
    if (this.get(path) !== undefined && !this.#set.has(path)) this.#changes.set(path, undefined);
    if (!below) return;
    const prefix = path === '' ? '' : `${path}/`;
    for (const key of this.#before.keys()) {
      if (key.startsWith(prefix) && !this.#set.has(key)) this.#changes.set(key, undefined);
    }
  }

  /** What it holds now; the earlier map itself when nothing differs. */
  get map(): PersistentMap<V> {
    return this.#before.with(this.#changes);
  }
}
