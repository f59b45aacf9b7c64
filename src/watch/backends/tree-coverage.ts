/**
 * Whether parcel watches every directory of a tree. On Linux it begins to watch one when the kernel tells it that one
 * was made or moved there. It never looks what stands in it by then, passes over what may not be read, and says nothing
 * of events that were dropped.
 *
 * | a directory that was not there before                  | then                                             |
 * |--------------------------------------------------------|--------------------------------------------------|
 * | stands in another one                                  | it may be missed                                 |
 * | parcel told that it, or something in it, was made      | it is watched                                    |
 * | parcel has not, for `LATEST_EVENT_MS`                  | it is missed: the kernel's queue has overflowed, |
 * |                                                        | or it could not be read when it was made         |
 */
import { dirname } from 'node:path';

import type { WatchedDirectory } from '../../core/watch-backend.js';

/** parcel holds an event back for 500 ms at the most while it is busy; twice that, for a busy machine. */
const LATEST_EVENT_MS = 1_000;

/** What is known of the directories of one tree. */
export class TreeCoverage {
  readonly #root: string;
  #known: ReadonlySet<string> | undefined;
  /** The paths parcel told of since the last setDirectories, and between the one before and that: an event may be older than its look. */
  #told = new Set<string>();
  #toldBefore = new Set<string>();
  /** Directories that were found and not told of, and when they were found, monotonic ms. */
  readonly #untold = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Takes in that all was opened anew, after what was directoriesSet at last had been found. */
  opened(): void {
    this.#untold.clear();
  }

  /** Takes in that something has happened at this path; `isMade`: it was not there before. */
  tell(path: string, isMade: boolean): void {
    const directory = dirname(path);
    this.#untold.delete(directory);
    if (!isMade) return;
    this.#untold.delete(path);
    this.#told.add(path).add(directory);
  }

  /** The same directories are directoriesSet at. True when one of them is missed. */
  again(now: number): boolean {
    this.#toldBefore = this.#told;
    this.#told = new Set();
    return [...this.#untold.values()].some((since) => now - since >= LATEST_EVENT_MS);
  }

  /** These are directoriesSet at. True when one of them is, or may be, missed: then all is to be opened anew. */
  setDirectories(members: readonly WatchedDirectory[], now: number): boolean {
    const known = this.#known;
    this.#known = new Set(members.map(keyOf));
    const paths = new Set(members.map(({ path }) => path));
    for (const path of this.#untold.keys()) if (!paths.has(path)) this.#untold.delete(path);
    if (!known) return true;
    const fresh = new Set(members.filter((member) => !known.has(keyOf(member))).map(({ path }) => path));
    for (const path of fresh) {
      const isTold = this.#told.has(path) || this.#toldBefore.has(path);
      // Another root is another tree, which is opened anew in any case.
      if (!isTold && path !== this.#root) this.#untold.set(path, now);
    }
    const isMissed = this.again(now);
    return isMissed || [...fresh].some((path) => fresh.has(dirname(path)));
  }
}

function keyOf({ identity, path }: WatchedDirectory): string {
  return `${identity} ${path}`;
}
