import { LONG_PAUSE, type Effects } from './effects.js';
import { PersistentMap, withEntries } from './persistent-map.js';
import { sortedKeys } from './sorted-keys.js';

/** The number of entries that are changed or visited within two or three milliseconds. */
const PORTION = 2_000;
const SWEPT_AT_ONCE = 10_000;

/** The same as `withEntries`, in portions where there may be many. */
export function changedMap<V>(
  map: PersistentMap<V>,
  changes: ReadonlyMap<string, V | undefined>,
): Effects<PersistentMap<V>>;
export function changedMap<V>(
  map: ReadonlyMap<string, V>,
  changes: ReadonlyMap<string, V | undefined>,
): Effects<ReadonlyMap<string, V>>;
export function* changedMap<V>(
  map: ReadonlyMap<string, V>,
  changes: ReadonlyMap<string, V | undefined>,
): Effects<ReadonlyMap<string, V>> {
  if (changes.size <= PORTION || !(map instanceof PersistentMap)) return withEntries(map, changes);
  // In order, so that each portion is about a few leaves.
  const keys = yield* sortedKeys(changes.keys());
  let changed = map as PersistentMap<V>;
  for (let from = 0; from < keys.length; from += PORTION) {
    const portion = keys.slice(from, from + PORTION);
    changed = changed.with(new Map(portion.map((key) => [key, changes.get(key)])));
    yield LONG_PAUSE;
  }
  return changed;
}

/** A map by path that is derived from an earlier one and records what was set in it. */
export class Draft<V> {
  readonly #same: (a: V, b: V) => boolean;
  readonly #before: PersistentMap<V>;
  /** What differs from the earlier map; undefined: removed. */
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

  /** What is known under this key was found again, as it was. */
  keep(key: string): void {
    this.#set.add(key);
  }

  /**
   * Removes what was not set, at these paths and below these directories.
   * @param isKept what stays, whether it was found or not.
   */
  *sweep(paths: Iterable<string>, below: Subtrees, isKept: (path: string) => boolean = never): Effects<void> {
    for (const path of paths) if (!isKept(path)) this.#sweep(path);
    if (below.isEmpty) return;
    let seen = 0;
    for (const key of this.#before.keys()) {
      if (below.has(key) && !isKept(key)) this.#sweep(key);
      seen += 1;
      if (seen % SWEPT_AT_ONCE === 0) yield LONG_PAUSE;
    }
  }

  /** The present map; the earlier map itself if nothing differs. */
  *map(): Effects<PersistentMap<V>> {
    return this.#changes.size === 0 ? this.#before : yield* changedMap(this.#before, this.#changes);
  }

  #sweep(key: string): void {
    if (!this.#set.has(key) && this.get(key) !== undefined) this.#changes.set(key, undefined);
  }
}

/** What is below directories, given by path; `''` contains all others. */
export class Subtrees {
  /** The prefixes of the paths below, sorted; none is a prefix of another, so that at most one can match. */
  readonly #beginnings: string[] = [];

  constructor(directories: Iterable<string>) {
    const beginnings = [...directories].map((path) => (path === '' ? '' : `${path}/`)).sort();
    for (const beginning of beginnings) {
      const last = this.#beginnings.at(-1);
      if (last === undefined || !beginning.startsWith(last)) this.#beginnings.push(beginning);
    }
  }

  get isEmpty(): boolean {
    return this.#beginnings.length === 0;
  }

  has(path: string): boolean {
    let from = 0;
    let to = this.#beginnings.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#beginnings[middle] ?? '') <= path) from = middle + 1;
      else to = middle;
    }
    const beginning = this.#beginnings[from - 1];
    return beginning !== undefined && path.startsWith(beginning);
  }
}

const never = (): boolean => false;
