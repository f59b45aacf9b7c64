/**
 * The routes of the links in a tree or a revision: the entries that each leads through, and the links that lead through an
 * entry. What it costs to set a route depends on its length, not on the number of links.
 */

import { basename, dirname } from '../../core/ports/platform-path.js';
import { haveSameDirectories, type ConsultedDirectory } from '../consulted.js';

/** A directory that links lead through. */
interface Place {
  /** As it was last found. */
  identity: string;
  /** The links that lead through each of its entries, by key. */
  readonly entries: Map<string, Set<string>>;
  /** How many of the routes have more than an ancestor here. */
  ends: number;
  /** The same object until something changes. */
  watched: ConsultedDirectory | undefined;
}

export class LinkRoutes {
  readonly #routes = new Map<string, readonly ConsultedDirectory[]>();
  readonly #places = new Map<string, Place>();

  /** What was consulted to find the target of each link, by key. */
  get all(): ReadonlyMap<string, readonly ConsultedDirectory[]> {
    return this.#routes;
  }

  /** The links that lead through an entry, or through any entry of a directory. @param path of the entry or directory. */
  *through(path: string): Iterable<string> {
    const entries = this.#places.get(path)?.entries;
    if (entries) for (const links of entries.values()) yield* links;
    const links = this.#places.get(dirname(path))?.entries.get(basename(path));
    if (links) yield* links;
  }

  /** The directories that the routes lead through, with the entries that matter. */
  *directories(): Iterable<ConsultedDirectory> {
    for (const [path, place] of this.#places) {
      const { identity, entries, ends } = place;
      yield (place.watched ??= { path, identity, entries: [...entries.keys()], isAncestor: ends === 0 });
    }
  }

  /** Returns whether the link had another route. */
  set(key: string, route: readonly ConsultedDirectory[]): boolean {
    const before = this.#routes.get(key);
    this.#routes.set(key, route);
    if (before && haveSameDirectories({ directories: before }, { directories: route })) return false;
    if (before) this.#forget(key, before);
    for (const directory of route) this.#remember(key, directory);
    return true;
  }

  /** Returns whether the link had a route. */
  delete(key: string): boolean {
    const before = this.#routes.get(key);
    if (before) this.#forget(key, before);
    return this.#routes.delete(key);
  }

  #remember(key: string, { path, identity, entries, isAncestor }: ConsultedDirectory): void {
    let place = this.#places.get(path);
    if (!place)
      this.#places.set(path, (place = { identity, entries: new Map(), ends: 0, watched: undefined }));
    if (place.identity !== identity) place.watched = undefined;
    place.identity = identity;
    for (const entry of entries) {
      const links = place.entries.get(entry);
      if (links) links.add(key);
      else {
        place.entries.set(entry, new Set([key]));
        place.watched = undefined;
      }
    }
    if (isAncestor === true) return;
    place.ends += 1;
    if (place.ends === 1) place.watched = undefined;
  }

  #forget(key: string, route: readonly ConsultedDirectory[]): void {
    for (const { path, entries, isAncestor } of route) {
      const place = this.#places.get(path);
      if (!place) continue;
      for (const entry of entries) {
        const links = place.entries.get(entry);
        links?.delete(key);
        if (links?.size !== 0) continue;
        place.entries.delete(entry);
        place.watched = undefined;
      }
      if (isAncestor !== true) {
        place.ends -= 1;
        if (place.ends === 0) place.watched = undefined;
      }
      if (place.entries.size === 0) this.#places.delete(path);
    }
  }
}
