/**
 * Decides which paths belong to a tree: all except those that `ignore` matches and those that `remove` has taken out. What
 * holds for a path holds for everything below it. With `include`, of the files only those that it matches; a directory
 * need not match, since files in it may. Paths are keys, relative to the root, which is `''`.
 *
 * | the last call that names a path, or a directory above it | the path                                         |
 * |----------------------------------------------------------|--------------------------------------------------|
 * | none, or `add`                                           | is in the tree, unless `ignore` matches it       |
 * | `remove`                                                 | is not in the tree; it is visited only if a path |
 * |                                                          | below it was added again                         |
 */
import { Globs, type IgnorePattern } from './globs.js';

/** The paths of a tree, as keys. Never modified, because a look may be under way. */
export class TreeScope {
  readonly #ignore: Globs;
  readonly #include: Globs | undefined;
  /** Whether a path and everything below it is in the tree, by the calls that no later call overrides. */
  readonly #calls: ReadonlyMap<string, boolean>;
  /** The directories above the paths of the calls. */
  readonly #above = new Set<string>();

  private constructor(ignore: Globs, include: Globs | undefined, calls: ReadonlyMap<string, boolean>) {
    this.#ignore = ignore;
    this.#include = include;
    this.#calls = calls;
    for (let place of calls.keys()) {
      while (place !== '' && !this.#above.has((place = parentOf(place)))) this.#above.add(place);
    }
  }

  static readonly all = TreeScope.without([]);

  /** All paths except those that the patterns match, and all files unless they have to match others. */
  static without(patterns: readonly IgnorePattern[], include?: readonly IgnorePattern[]): TreeScope {
    return new TreeScope(new Globs(patterns), include && new Globs(include, 'include'), new Map());
  }

  /** Whether the calls leave this path in the tree. Patterns are not considered. */
  includes(key: string): boolean {
    if (this.#calls.size === 0) return true;
    for (let place = key; place !== ''; place = parentOf(place)) {
      const isIncluded = this.#calls.get(place);
      if (isIncluded !== undefined) return isIncluded;
    }
    return true;
  }

  /** Whether a file at this path is in the tree. The caller has visited the directories above it. */
  takes(key: string): boolean {
    return this.includes(key) && this.#include?.matches(key) !== false;
  }

  /** Whether this path need not be visited. The caller has visited the directories above it. */
  leavesOut(key: string): boolean {
    return this.#ignore.matches(key) || (!this.includes(key) && !this.#hasCallsBelow(key));
  }

  /** Whether a pattern matches this path, or a directory above it and below `top`. */
  ignores(key: string, top = ''): boolean {
    for (let place = key; place !== top; place = parentOf(place))
      if (this.#ignore.matches(place)) return true;
    return false;
  }

  /** A scope that includes this path and everything below it, or excludes it; itself if that already holds. */
  with(key: string, isIncluded: boolean): TreeScope {
    if (this.includes(key) === isIncluded && !this.#hasCallsBelow(key)) return this;
    const calls = new Map([...this.#calls].filter(([place]) => place !== key && !isBelow(place, key)));
    const rest = new TreeScope(this.#ignore, this.#include, calls);
    if (rest.includes(key) === isIncluded) return rest;
    return new TreeScope(this.#ignore, this.#include, calls.set(key, isIncluded));
  }

  #hasCallsBelow(key: string): boolean {
    return this.#above.has(key);
  }
}

function isBelow(place: string, key: string): boolean {
  return key === '' || place.startsWith(`${key}/`);
}

/** The key of an entry of a directory. */
export function childOf(key: string, name: string): string {
  return key === '' ? name : `${key}/${name}`;
}

/** The key of the directory that contains an entry. */
export function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

/** The last name of a key. */
export function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}
