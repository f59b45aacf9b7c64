/**
 * Whether parcel watches every directory of a tree. On Linux it begins to watch a directory when the kernel reports
 * that the directory was created or moved there. It never lists the entries that such a directory already has, skips
 * those that may not be read, and does not report dropped events.
 *
 * | a directory that did not exist before              | then                                             |
 * |----------------------------------------------------|--------------------------------------------------|
 * | is in another such directory                       | it may be missed                                 |
 * | parcel reported that it, or an entry of it, is new | it is watched                                    |
 * | parcel has not, for `LATEST_EVENT_MS`              | it is missed: the kernel's queue has overflowed, |
 * |                                                    | or it could not be read when it was created      |
 */
import { dirname } from 'node:path';

import type { WatchedDirectory } from '../../core/watch-backend.js';

/** parcel delays events by at most 500 ms while it is busy; doubled for a busy system. */
const LATEST_EVENT_MS = 1_000;

/** What is known about the directories of one tree. */
export class TreeCoverage {
  readonly #root: string;
  #known: ReadonlySet<string> | undefined;
  /**
   * The paths that parcel has reported since the last `setDirectories`, and between that call and the previous one: an
   * event may be older than the check that finds its directory.
   */
  #reported = new Set<string>();
  #reportedBefore = new Set<string>();
  /** Directories that were found but not reported, and when they were found, monotonic ms. */
  readonly #unreported = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  /** The tree was opened again after the last set of directories had been found. */
  opened(): void {
    this.#unreported.clear();
  }

  /** Something has happened at this path; `isMade`: the entry was created. */
  report(path: string, isMade: boolean): void {
    const directory = dirname(path);
    this.#unreported.delete(directory);
    if (!isMade) return;
    this.#unreported.delete(path);
    this.#reported.add(path).add(directory);
  }

  /** The same directories were set again. Returns whether one of them is missed. */
  again(now: number): boolean {
    this.#reportedBefore = this.#reported;
    this.#reported = new Set();
    return [...this.#unreported.values()].some((since) => now - since >= LATEST_EVENT_MS);
  }

  /**
   * These directories were set. Returns whether one of them is or may be missed, so that the tree must be opened again.
   */
  setDirectories(members: readonly WatchedDirectory[], now: number): boolean {
    const known = this.#known;
    this.#known = new Set(members.map(keyOf));
    const paths = new Set(members.map(({ path }) => path));
    for (const path of this.#unreported.keys()) if (!paths.has(path)) this.#unreported.delete(path);
    if (!known) return true;
    const fresh = new Set(members.filter((member) => !known.has(keyOf(member))).map(({ path }) => path));
    for (const path of fresh) {
      const isReported = this.#reported.has(path) || this.#reportedBefore.has(path);
      // Another root is another tree, which is opened again in any case.
      if (!isReported && path !== this.#root) this.#unreported.set(path, now);
    }
    const isMissed = this.again(now);
    return isMissed || [...fresh].some((path) => fresh.has(dirname(path)));
  }
}

function keyOf({ identity, path }: WatchedDirectory): string {
  return `${identity} ${path}`;
}
