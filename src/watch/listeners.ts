/**
 * Decides who hears of an event in a directory. What a target is depends only on the entries that were consulted to
 * find it, so an event about another entry is ignored.
 *
 * Entries that begin with two dots belong to the volume itself and count as one. kubelet creates the next revision and
 * `..data_tmp` just before it retargets `..data`, and the look that they lead to usually finds the swap done.
 */
import { isUserVisible } from '../fs/volume-layout.js';

const NONE: readonly never[] = [];

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
    return this.#toAll.size > 0 ? [...this.#toAll] : NONE;
  }

  /** Listens to these entries from now on. Returns those that are new; undefined: all of the directory. */
  set(who: Who, entries: readonly string[] | undefined): readonly string[] | undefined {
    const isListening = this.#entries.has(who);
    const before = this.#entries.get(who);
    if (isListening && before === entries) return NONE;
    this.#entries.set(who, entries);
    if (entries) this.#toAll.delete(who);
    else this.#toAll.add(who);
    const listsHidden = entries?.some((entry) => !isUserVisible(entry));
    const [gone, added] = differing(before ?? NONE, entries ?? NONE);
    for (const entry of gone) {
      const isStillListed = !isUserVisible(entry) && listsHidden;
      if (!isStillListed) this.#leave(who, listedAs(entry));
    }
    for (const entry of added) this.#join(who, listedAs(entry));
    if (!isListening) return undefined;
    return before === undefined ? NONE : entries && added;
  }

  delete(who: Who): void {
    for (const name of new Set(this.#entries.get(who)?.map(listedAs))) this.#leave(who, name);
    this.#entries.delete(who);
    this.#toAll.delete(who);
  }

  #join(who: Who, name: string): void {
    const some = this.#byEntry.get(name);
    if (some) some.add(who);
    else this.#byEntry.set(name, new Set([who]));
  }

  #leave(who: Who, name: string): void {
    const some = this.#byEntry.get(name);
    some?.delete(who);
    if (some?.size === 0) this.#byEntry.delete(name);
  }
}

/**
 * What is only in the first of two lists, and only in the second one. A directory may have thousands of entries, and is
 * usually set with one more or less: what both lists begin and end with is only gone through.
 */
function differing(one: readonly string[], other: readonly string[]): [gone: string[], added: string[]] {
  const shorter = Math.min(one.length, other.length);
  let head = 0;
  while (head < shorter && one[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
  const [before, after] = [one.slice(head, one.length - tail), other.slice(head, other.length - tail)];
  const [known, wanted] = [new Set(before), new Set(after)];
  return [before.filter((entry) => !wanted.has(entry)), after.filter((entry) => !known.has(entry))];
}

function listedAs(entry: string): string {
  return isUserVisible(entry) ? entry : '..';
}
