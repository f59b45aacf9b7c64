/**
 * Which paths belong to a tree: all, without what `ignore` matches, and without what was removed from the tree while it
 * is watched. Everything below a path shares its fate.
 *
 * | the last call that names a path, or a directory above it | the path                                          |
 * |----------------------------------------------------------|---------------------------------------------------|
 * | none, or `add`                                           | is in the tree, unless `ignore` matches it        |
 * | `remove`                                                 | is not; its directory is visited only if something |
 * |                                                          | below was added again                             |
 */
import { PathGlobs, type IgnorePattern } from './path-globs.js';
import { parentOf, placesOnTheWay } from './tree-key.js';

/** The paths of a tree, as keys. Never modified, since a walk may be under way. */
export class TreeScope {
  readonly #ignore: PathGlobs;
  /** What the calls say, without those that a later one overrides: whether the path with all below is in the tree. */
  readonly #calls: ReadonlyMap<string, boolean>;

  private constructor(ignore: PathGlobs, calls: ReadonlyMap<string, boolean>) {
    this.#ignore = ignore;
    this.#calls = calls;
  }

  /** All paths but those that the patterns match. */
  static without(patterns: readonly IgnorePattern[]): TreeScope {
    return new TreeScope(new PathGlobs(patterns), new Map());
  }

  /** Whether a call decides about this path that it is in the tree, if no pattern matches it. */
  includes(key: string): boolean {
    if (this.#calls.size === 0) return true;
    for (let place = key; place !== ''; place = parentOf(place)) {
      const isIncluded = this.#calls.get(place);
      if (isIncluded !== undefined) return isIncluded;
    }
    return true;
  }

  /** Whether this path was removed with everything below it. */
  isRemoved(key: string): boolean {
    return !this.includes(key) && !this.#hasCallsBelow(key);
  }

  /** Whether this path need not be visited. The caller has visited the directories above it. */
  leavesOut(key: string): boolean {
    return this.#ignore.matches(key) || this.isRemoved(key);
  }

  /** Whether a pattern matches this path or a directory above it. */
  ignores(key: string): boolean {
    return [...placesOnTheWay(key)].some((place) => this.#ignore.matches(place));
  }

  /** With this path and everything below it in the tree, or not; itself if that is so already. */
  with(key: string, isIncluded: boolean): TreeScope {
    if (this.includes(key) === isIncluded && !this.#hasCallsBelow(key)) return this;
    const calls = new Map([...this.#calls].filter(([place]) => place !== key && !isBelow(place, key)));
    const rest = new TreeScope(this.#ignore, calls);
    return rest.includes(key) === isIncluded ? rest : new TreeScope(this.#ignore, calls.set(key, isIncluded));
  }

  #hasCallsBelow(key: string): boolean {
    for (const place of this.#calls.keys()) if (isBelow(place, key)) return true;
    return false;
  }
}

function isBelow(place: string, key: string): boolean {
  return key === '' || place.startsWith(`${key}/`);
}
