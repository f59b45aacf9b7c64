/**
 * Decides who hears of an event in a directory. What a target is depends only on the entries that were consulted to
 * find it, so an event about another entry is ignored.
 *
 * Entries that begin with two dots belong to the volume itself and count as one. kubelet creates the next revision and
 * `..data_tmp` just before it retargets `..data`, and the look that they lead to usually finds the swap done.
 */
import { isUserVisible } from '../fs/volume-layout.js';

const NOBODY: readonly never[] = [];
const NOTHING: readonly never[] = [];

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

  /** Listens to these entries from now on. Returns those that are new; undefined: all of the directory. */
  set(who: Who, entries: readonly string[] | undefined): readonly string[] | undefined {
    const isListening = this.#entries.has(who);
    const before = this.#entries.get(who);
    if (isListening && before === entries) return NOTHING;
    this.#entries.set(who, entries);
    if (entries) this.#toAll.delete(who);
    else this.#toAll.add(who);
    // Only what differs, because a directory may have thousands of entries.
    const [known, names] = [new Set(before?.map(listedAs)), new Set(entries?.map(listedAs))];
    for (const name of known) if (!names.has(name)) this.#leave(who, name);
    for (const name of names) if (!known.has(name)) this.#join(who, name);
    if (!isListening) return undefined;
    if (before === undefined) return NOTHING;
    const listened = new Set(before);
    return entries?.filter((entry) => !listened.has(entry));
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

function listedAs(entry: string): string {
  return isUserVisible(entry) ? entry : '..';
}
