import type { Dirent } from 'node:fs';

import { within } from './absolute-path.js';
import { DirectoryWalk, type Entry, type TreeWalkOptions } from './directory-walk.js';
import type { Effects } from './effects.js';
import { identityOf, signatureOf } from './file-identity.js';
import { VERIFIED_AT_ONCE } from './observation.js';
import { Draft, Subtrees } from './tree-draft.js';
import { parentOf, placesOnTheWay, shownPlace } from './tree-key.js';
import type { OwnPart } from './tree-part.js';

/** Visits what is in a tree under its own path: all of it, or the places of it that may have changed. */
export class OwnWalk extends DirectoryWalk {
  readonly #previous: OwnPart | undefined;
  readonly #links: Draft<string>;
  readonly #mounts: Draft<string>;
  readonly #listed: Draft<string>;
  /** Whether directories that have not changed are not entered, unless they are `#onTheWay`. */
  #isShallow = false;
  /** The directories above those that are to be listed again. */
  #onTheWay: ReadonlySet<string> = new Set();
  /** The directories that were not entered. */
  readonly #unchanged = new Set<string>();

  constructor(root: string, options: TreeWalkOptions, previous: OwnPart | undefined) {
    super(root, options, false, previous);
    this.#previous = previous;
    this.#links = new Draft<string>(Object.is, previous?.links);
    this.#mounts = new Draft<string>(Object.is, previous?.mounts);
    this.#listed = new Draft<string>(Object.is, previous?.listed);
  }

  /**
   * @param keys what is visited with everything below it.
   * @param relisted directories whose entries may have changed, see `rewalkTree`.
   */
  *run(keys: readonly string[], relisted: readonly string[]): Effects<OwnPart> {
    const [done, listedAgain] = [new Set<string>(), new Set<string>()];
    for (const key of keys) yield* this.#visitNamed(shownPlace(key), done);
    this.#isShallow = true;
    this.#onTheWay = new Set(relisted.flatMap((key) => [...placesOnTheWay(key)]));
    for (const key of relisted) yield* this.#visitNamed(key, listedAgain);
    yield* this.#sweep(done, new Set());
    yield* this.#sweep(listedAgain, this.#unchanged);
    return {
      ...(yield* this.part.part()),
      links: yield* this.#links.map(),
      mounts: yield* this.#mounts.map(),
      listed: yield* this.#listed.map(),
    };
  }

  protected override enters(): boolean {
    return true;
  }

  protected override onLink(key: string, path: string): void {
    this.#links.set(key, path);
  }

  protected override onMount(key: string, _path: string, identity: string): void {
    this.#mounts.set(key, identity);
  }

  protected override onListed({ key, stat }: Entry): void {
    this.#listed.set(key, signatureOf(stat));
  }

  protected override isKnown(key: string, entry: Dirent, siblings: number): boolean {
    if (!this.#isShallow || siblings <= VERIFIED_AT_ONCE || !entry.isFile()) return false;
    // A file at which a file system begins may be another one by now.
    if (!this.part.files.get(key) || this.#mounts.get(key) !== undefined) return false;
    this.part.files.keep(key);
    return true;
  }

  protected override isUnchanged({ key, stat }: Entry): boolean {
    if (!this.#isShallow || !stat.isDirectory() || this.#onTheWay.has(key)) return false;
    if (this.#previous?.listed.get(key) !== signatureOf(stat)) return false;
    this.#unchanged.add(key);
    return true;
  }

  /** Visits what a key names, or the first component of it that is not known as a directory. */
  *#visitNamed(key: string, done: Set<string>): Effects<void> {
    if (done.has('')) return;
    const { scope } = this.options;
    if (scope.isRemoved(key)) {
      // It is swept with everything below, even below a directory that can no longer be listed.
      done.add(key);
      return;
    }
    for (const place of placesOnTheWay(key)) {
      if (done.has(place) || (place !== '' && scope.leavesOut(place))) return;
      if (place !== key && this.part.directories.get(place)) continue;
      done.add(place);
      yield* this.#visit(place);
      return;
    }
  }

  *#visit(key: string): Effects<void> {
    const path = key === '' ? this.root : within(this.root, key);
    const stat = yield* this.statAt(key, path);
    if (!stat) return;
    if (key === '' && !stat.isDirectory()) throw this.noTree('ENOTDIR');
    if (stat.isSymbolicLink()) this.#links.set(key, path);
    const above = key === '' ? undefined : this.part.directories.get(parentOf(key));
    const directories: Entry[] = [];
    this.sort({ key, path, stat }, above?.identity ?? identityOf(stat), directories);
    yield* this.list(directories);
  }

  /**
   * Removes what was not found again at these paths: once for all of them, since it takes a pass over everything.
   * @param unchanged the directories that were not entered.
   */
  *#sweep(done: ReadonlySet<string>, unchanged: ReadonlySet<string>): Effects<void> {
    if (done.size === 0) return;
    const { scope } = this.options;
    // Nothing was known below what was not a directory.
    const below = new Subtrees(
      [...done].filter((place) => scope.isRemoved(place) || this.#previous?.directories.has(place)),
    );
    const insideUnchanged = new Subtrees(unchanged);
    const isKept = (path: string): boolean => unchanged.has(path) || insideUnchanged.has(path);
    for (const draft of [this.#links, this.#mounts, this.#listed]) yield* draft.sweep(done, below, isKept);
    yield* this.part.sweep(done, below, scope, isKept);
  }
}
