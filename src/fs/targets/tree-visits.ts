/**
 * What a look at a directory or a tree still has to visit. When nothing is left, the links that it followed are proven:
 * what was replaced in the meantime is visited again, in another attempt.
 */
import { nextSlice, type Steps } from '../../core/scheduling/steps.js';
import type { Disk } from '../disk.js';
import { wereRetargeted, type Way } from '../resolve.js';
import { FileSnapshot } from '../snapshot.js';
import { parentOf } from '../tree-scope.js';
import type { TreeNodes } from './tree-nodes.js';

/** The keys to visit. */
export class TreeVisits {
  readonly #nodes: TreeNodes;
  readonly #next = new Set<string>();
  /**
   * Directories that are listed even if they have not changed, and in which all files are visited, even if there are
   * many.
   */
  readonly #relisted = new Set<string>();
  /** The links through which keys were found, see `Way`. */
  readonly #ways = new Map<string, string>();
  /** What was not there, by the keys of the links that lead there. */
  readonly #absent = new Map<string, string>();
  /** The `..data` of volumes that were listed in the gap of a swap, by key. */
  readonly #gaps = new Map<string, string>();
  /** The paths of entries that were there before and are gone, by key. */
  readonly #gone = new Map<string, string>();
  /** What was replaced while it was read. */
  readonly #moved = new Set<string>();
  /** Volumes whose swap this attempt has noticed. */
  readonly #swapped = new Set<string>();

  constructor(nodes: TreeNodes) {
    this.#nodes = nodes;
  }

  get isEmpty(): boolean {
    return this.#next.size === 0;
  }

  /** Visits the entry with this key. */
  visit(key: string): void {
    this.#next.add(key);
  }

  /** Lists the directory with this key and visits all of its files, or reads it if it is a volume. */
  relist(key: string): void {
    this.#relisted.add(key);
    this.visit(key);
  }

  /** Visits the links that lead through this entry or directory. */
  visitLinksThrough(path: string): void {
    for (const key of this.#nodes.routes.through(path)) this.visit(key);
  }

  /** Visits what is to be visited because of the results. */
  visitConsequences(): void {
    const { kept, allowed, files, haveDirectoriesChanged } = this.#nodes;
    if (kept !== allowed) {
      this.#nodes.kept = allowed;
      for (const key of files.keys()) this.visit(key);
    }
    if (haveDirectoriesChanged) for (const key of this.#nodes.takeOrphans()) this.visit(key);
  }

  /** The keys, each taken out; also those that are added in the meantime. */
  *taken(): Iterable<string> {
    for (const key of this.#next) {
      this.#next.delete(key);
      yield key;
    }
  }

  isRelisted(key: string): boolean {
    return this.#relisted.has(key);
  }

  /** What this key leads to was found through these links. @param absent what they lead to, if it is not there. */
  followed(key: string, links: string, absent?: string): void {
    this.#ways.set(key, links);
    if (absent === undefined) this.#absent.delete(key);
    else this.#absent.set(key, absent);
  }

  /** A directory was listed. @param gap `..data`, if it is a volume without it. */
  listed(key: string, gap: string | undefined): void {
    if (gap === undefined) this.#gaps.delete(key);
    else this.#gaps.set(key, gap);
  }

  /** An entry that was there before is not there. */
  gone(key: string, path: string): void {
    this.#gone.set(key, path);
  }

  /** The entry was replaced while it was read. */
  moved(key: string): void {
    this.#moved.add(key);
  }

  /**
   * If what is found is new, comes from another revision or has left its volume, everything else in there is visited, too. A
   * revision loses no files: what is missing in it has left the volume.
   */
  notice(key: string, { volume, revision }: Way, isMissing = false): void {
    const before = this.#origin(key);
    // In the gap of a swap, a link leads through no volume.
    if (before?.volume !== volume || isMissing) this.#visitVolume(before?.volume);
    if (before?.revision !== revision) this.#visitVolume(volume);
  }

  /** Where a file, or a directory behind a link, was found. */
  #origin(key: string): Pick<Way, 'volume' | 'revision'> | undefined {
    const file = this.#nodes.files.get(key);
    if (!file) return this.#nodes.directories.get(key)?.way;
    return { volume: FileSnapshot.stampOf(file).volume, revision: file.revision };
  }

  #visitVolume(volume: string | undefined): void {
    if (volume === undefined || this.#swapped.has(volume)) return;
    this.#swapped.add(volume);
    const directory = this.#nodes.directoryAt(volume);
    // One that was no volume when it was listed is listed again, in another attempt.
    if (directory?.volume) this.visit(directory.key);
    else if (directory) this.moved(directory.key);
    // Also those that led nowhere before the volume was published.
    this.visitLinksThrough(volume);
  }

  /**
   * Whether nothing has moved: the links that were followed still lead where they led, or nowhere, so that what lies in a
   * volume is of one instant; and what is gone was not only out of reach while a directory above it was renamed away.
   */
  *areProven(disk: Disk): Steps<boolean> {
    for (const [key, links] of this.#ways) {
      yield* nextSlice();
      if (yield* wereRetargeted(links, disk)) this.moved(key);
    }
    for (const absent of [this.#absent, this.#gaps]) {
      for (const [key, path] of absent) {
        yield* nextSlice();
        if (yield* disk.lstat(path)) this.moved(key);
      }
    }
    const reachable = new Set<string>();
    for (const [key, path] of this.#gone) {
      yield* nextSlice();
      yield* this.#reach(parentOf(key), reachable, disk);
      if (yield* disk.lstat(path)) this.moved(key);
    }
    return this.#moved.size === 0;
  }

  /** Notes which directories from this one up to the root are not there. @param reachable those that are. */
  *#reach(key: string, reachable: Set<string>, disk: Disk): Steps<void> {
    for (let at = key; !reachable.has(at) && !this.#moved.has(at); at = parentOf(at)) {
      const directory = this.#nodes.directories.get(at);
      if (directory && (yield* disk.lstat(directory.path))) reachable.add(at);
      else if (directory) this.moved(at);
      if (at === '') return;
    }
  }

  /** Begins another attempt: what has moved is visited again. */
  startOver(): void {
    for (const key of this.#moved) {
      this.relist(key);
      // It may be no link any more.
      this.#ways.delete(key);
      this.#absent.delete(key);
      this.#gaps.delete(key);
    }
    this.#gone.clear();
    this.#moved.clear();
    this.#swapped.clear();
  }
}
