/**
 * Decides who hears of an event in a directory. What a target is depends only on the entries that were consulted to
 * find it, so an event about another entry is ignored.
 *
 * Entries that begin with two dots belong to the volume itself and count as one. kubelet creates the next revision and
 * `..data_tmp` just before it retargets `..data`, and the look that they lead to usually finds the swap done.
 */
import { isUserVisible } from '../fs/volume-layout.js';

const NOBODY: readonly never[] = [];

export class Listeners<Who> {
  /** The entries that each listener listens to; undefined: all. */
  readonly #entries = new Map<Who, readonly string[] | undefined>();
  readonly #byEntry = new Map<string, Set<Who>>();
  readonly #toAll = new Set<Who>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  get all(): Iterable<Who> {
    return [...this.#entries.keys()];
  }

  has(who: Who): boolean {
    return this.#entries.has(who);
  }

  /** The listeners of this entry. */
  to(entry: string): readonly Who[] {
    const some = this.#byEntry.get(listedAs(entry));
    if (some) return [...some, ...this.#toAll];
    return this.#toAll.size > 0 ? [...this.#toAll] : NOBODY;
  }

  /** Listens to these entries from now on. Returns whether some of them are new. */
  set(who: Who, entries: readonly string[] | undefined): boolean {
    const isListening = this.#entries.has(who);
    const before = this.#entries.get(who);
    if (isListening && before === entries) return false;
    this.delete(who);
    this.#entries.set(who, entries);
    if (!entries) this.#toAll.add(who);
    for (const name of entries?.map(listedAs) ?? []) {
      const some = this.#byEntry.get(name);
      if (some) some.add(who);
      else this.#byEntry.set(name, new Set([who]));
    }
    if (!isListening) return true;
    if (before === undefined) return false;
    const known = new Set(before);
    return !entries?.every((entry) => known.has(entry));
  }

  delete(who: Who): void {
    const entries = this.#entries.get(who);
    this.#entries.delete(who);
    this.#toAll.delete(who);
    for (const name of entries?.map(listedAs) ?? []) {
      const some = this.#byEntry.get(name);
      some?.delete(who);
      if (some?.size === 0) this.#byEntry.delete(name);
    }
  }
}

function listedAs(entry: string): string {
  return isUserVisible(entry) ? entry : '..';
}
