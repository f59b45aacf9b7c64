import { inspect } from 'node:util';

/** An immutable map of one entry. A `Map` takes five times the memory, and each watcher of a file has one. */
export class SingleEntryMap<V> implements ReadonlyMap<string, V> {
  readonly size = 1;
  readonly #key: string;
  readonly #value: V;

  constructor(key: string, value: V) {
    this.#key = key;
    this.#value = value;
  }

  get(key: string): V | undefined {
    return key === this.#key ? this.#value : undefined;
  }

  has(key: string): boolean {
    return key === this.#key;
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    callback(this.#value, this.#key, this);
  }

  *entries(): MapIterator<[string, V]> {
    yield [this.#key, this.#value];
  }

  *keys(): MapIterator<string> {
    yield this.#key;
  }

  *values(): MapIterator<V> {
    yield this.#value;
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }

  [inspect.custom](): ReadonlyMap<string, V> {
    return new Map(this);
  }
}
