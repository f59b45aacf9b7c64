import { inspect } from 'node:util';

/**
 * An immutable map: `with` creates another one that shares with the first everything that is equal. Changing an
 * entry and comparing two maps take about the square root of the size.
 *
 * Keys are distributed over buckets by their hash; two maps that share a bucket do not differ in it.
 */
export class PersistentMap<V> implements ReadonlyMap<string, V> {
  readonly size: number;
  readonly #buckets: readonly Bucket<V>[];

  private constructor(buckets: readonly Bucket<V>[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(emptyBuckets(0), 0);
  }

  get(key: string): V | undefined {
    return this.#buckets[indexOf(key, this.#buckets)]?.get(key);
  }

  has(key: string): boolean {
    return this.#buckets[indexOf(key, this.#buckets)]?.has(key) ?? false;
  }

  /** This map with these entries set, and those removed whose value is undefined; itself if nothing changes. */
  with(changes: ReadonlyMap<string, V | undefined>): PersistentMap<V> {
    if (changes.size === 0) return this;
    const full = isFullFor(this.size + changes.size, this.#buckets);
    const spread: Bucket<V>[] = full
      ? spreadOver(emptyBuckets<V>(this.size + changes.size), this)
      : [...this.#buckets];
    const own = new Set<number>();
    let { size } = this;
    for (const [key, value] of changes) {
      const index = indexOf(key, spread);
      if (!own.has(index)) spread[index] = new Map(spread[index]);
      own.add(index);
      const bucket = spread[index] as Map<string, V>;
      size -= bucket.size;
      if (value === undefined) bucket.delete(key);
      else bucket.set(key, value);
      size += bucket.size;
    }
    return new PersistentMap(spread, size);
  }

  /** The keys whose values are not identical in both maps. */
  static *differingKeys<V>(one: PersistentMap<V>, other: PersistentMap<V>): Iterable<string> {
    if (one.#buckets.length !== other.#buckets.length) yield* keysThatDiffer(one.#whole(), other.#whole());
    else {
      for (const [index, bucket] of one.#buckets.entries()) {
        const against = other.#buckets[index];
        if (against !== undefined && bucket !== against) yield* keysThatDiffer(bucket, against);
      }
    }
  }

  *entries(): MapIterator<[string, V]> {
    for (const bucket of this.#buckets) yield* bucket;
  }

  *keys(): MapIterator<string> {
    for (const bucket of this.#buckets) yield* bucket.keys();
  }

  *values(): MapIterator<V> {
    for (const bucket of this.#buckets) yield* bucket.values();
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this) callback(value, key, this);
  }

  [inspect.custom](): Bucket<V> {
    return this.#whole();
  }

  #whole(): Bucket<V> {
    return new Map(this);
  }
}

/** The first map, with the values of the second under these keys. */
export function withEntries<V>(
  map: ReadonlyMap<string, V>,
  keys: readonly string[],
  from: ReadonlyMap<string, V>,
): ReadonlyMap<string, V> {
  const changes = new Map(keys.map((key) => [key, from.get(key)]));
  if (map instanceof PersistentMap) return (map as PersistentMap<V>).with(changes);
  const copy = new Map(map);
  for (const [key, value] of changes) {
    if (value === undefined) copy.delete(key);
    else copy.set(key, value);
  }
  return copy;
}

type Bucket<V> = ReadonlyMap<string, V>;

/** A bucket holds at most four times as many entries as there are buckets. */
const MAX_CROWDING = 4;

function isFullFor(size: number, { length }: readonly unknown[]): boolean {
  return size > MAX_CROWDING * length * length;
}

/** The number of buckets, about the square root of the entries: a power of two, for `indexOf`. */
function emptyBuckets<V>(size: number): Bucket<V>[] {
  return Array.from({ length: 2 ** Math.ceil(Math.log2(Math.max(1, size)) / 2) }, () => new Map<string, V>());
}

function spreadOver<V>(buckets: Bucket<V>[], entries: Iterable<[string, V]>): Bucket<V>[] {
  for (const [key, value] of entries) (buckets[indexOf(key, buckets)] as Map<string, V>).set(key, value);
  return buckets;
}

/** FNV-1a: short, and distributes names that differ in one digit. */
function indexOf(key: string, { length }: readonly unknown[]): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < key.length; place += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(place), 0x01000193);
  }
  return (hash ^ (hash >>> 16)) & (length - 1);
}

/** The keys whose values are not identical in both maps. */
export function* keysThatDiffer<V>(
  one: ReadonlyMap<string, V>,
  other: ReadonlyMap<string, V>,
): Iterable<string> {
  if (one === other) return;
  if (one instanceof PersistentMap && other instanceof PersistentMap) {
    yield* PersistentMap.differingKeys(one as PersistentMap<V>, other as PersistentMap<V>);
    return;
  }
  for (const [key, value] of one) if (other.get(key) !== value) yield key;
  for (const key of other.keys()) if (!one.has(key)) yield key;
}
