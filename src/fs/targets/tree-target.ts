/**
 * A directory with everything below it.
 *
 * | what led to the check                     | what is checked                                                        |
 * |-------------------------------------------|------------------------------------------------------------------------|
 * | hints that say where                      | these places with all below, and what links lead to                    |
 * | hints that do not, more than 1 000 places, | everything                                                             |
 * | another directory at the root             |                                                                        |
 * | a resync                                  | the root, the next `VERIFIED_AT_ONCE` directories and files in turn,   |
 * |                                           | what links lead to, and what could not be read                         |
 * | a directory that a resync finds other than | its entries; directories in it only if they differ, too                |
 * | it was listed, or listing-proof.ts names  |                                                                        |
 * | a file that a resync finds other than it  | the file                                                               |
 * | was                                       |                                                                        |
 *
 * A file that was replaced is read before any of that, in the callback of the hint (`readReplacement`): the checks prove it.
 *
 * So when every hint is lost, what is added, removed or replaced among the first `VERIFIED_AT_ONCE` directories, and
 * what is written into as many files, is found at the next resync. In a larger tree each directory and file is verified
 * once in (directories or files / `VERIFIED_AT_ONCE`) resyncs, however often the tree changes meanwhile.
 */
import { relative, resolve, sep } from 'node:path';

import { within } from '../absolute-path.js';
import { errnoOf } from '../../core/errno.js';
import type { FileSystemCalls } from '../../core/file-system.js';
import { identityOf, signatureAt } from '../file-identity.js';
import { areLinksUnchanged, type ResolvedChain } from '../link-chain.js';
import { resolveChain } from '../resolve-chain.js';
import { readingError, TargetError } from '../target-error.js';
import { globsIn, type IgnorePattern } from '../path-globs.js';
import {
  VERIFIED_AT_ONCE,
  type AllowedMounts,
  type Found,
  type Moment,
  type Observation,
  type Regrouped,
  type Replacement,
  type Target,
} from '../observation.js';
import { ListingProof } from '../listing-proof.js';
import { Rotation } from '../rotation.js';
import { SetSnapshot } from '../snapshot.js';
import type { Effects } from '../effects.js';
import { keyBelow } from '../tree-key.js';
import type { TreeFile, TreeObservation, TreeWalk } from '../tree-part.js';
import { TreeScope } from '../tree-scope.js';
import { rewalkTree, walkDirectories, walkTree } from '../tree-walk.js';
import { givenPath } from './given-path.js';
import { Touched, type Places } from './touched.js';
import { TreeDirectories } from './tree-directories.js';
import { TreeFiles, type TreeReading } from './tree-files.js';

/** How a tree is read. */
export interface TreeOptions extends TreeReading {
  readonly ignore: readonly IgnorePattern[];
  readonly followLinks: boolean;
}

/** How often a tree whose root moves during a walk is walked again. */
const MAX_WALKS = 20;

/** A tree. It remembers the last walk, so that a hint with a path does not cause a complete walk. */
export class TreeTarget implements Target {
  readonly path: string;
  readonly #options: TreeOptions;
  #scope: TreeScope;
  /** The scope when something was last found. */
  #shown: TreeScope | undefined;
  readonly #touched = new Touched();
  /** The keys of the directories that are no longer as they were listed. */
  #relisted = new Set<string>();
  readonly #listings = new ListingProof();
  readonly #directoryTurns = new Rotation<string>();
  readonly #fileTurns = new Rotation<TreeFile>();
  #walk: TreeWalk | undefined;
  #last: Found | undefined;
  /** Identifies the root and the links by which it was reached. */
  #place = '';
  readonly #files: TreeFiles;
  readonly #directories: TreeDirectories;

  /** @param path absolute. */
  constructor(path: string, options: TreeOptions, scope = TreeScope.without(options.ignore)) {
    this.path = path;
    this.#options = options;
    this.#scope = scope;
    this.#files = new TreeFiles(path, options);
    this.#directories = new TreeDirectories(globsIn(options.ignore));
  }

  fresh(): TreeTarget {
    return new TreeTarget(this.path, this.#options, this.#scope);
  }

  /** A relative path is one below the root, as keys are. */
  add(given: string | URL): void {
    const key = this.#keyOf('add', given);
    this.#setScope(key, true, `Cannot add "${key}": it is in the tree already`);
  }

  /** See `add`. */
  remove(given: string | URL): void {
    const key = this.#keyOf('remove', given);
    if (key === '')
      throw new TypeError(`Cannot remove "${this.path}": it is the tree itself; close the watcher`);
    this.#setScope(key, false, `Cannot remove "${key}": it is not in the tree`);
  }

  #keyOf(what: string, given: string | URL): string {
    const path = givenPath('path', given, 'leave out what a glob matches with the option "ignore"');
    const root = resolve(this.path);
    const key = relative(root, resolve(root, path)).replaceAll(sep, '/');
    if (key === '..' || key.startsWith('../') || resolve(root, key) !== resolve(root, path)) {
      throw new TypeError(
        `Cannot ${what} "${path}": it is not below "${this.path}", the tree that is watched; use another watcher for it`,
      );
    }
    if (this.#scope.ignores(key)) {
      throw new TypeError(`Cannot ${what} "${key}": the option "ignore" leaves it out of the tree`);
    }
    return key;
  }

  #setScope(key: string, isIncluded: boolean, refusal: string): void {
    const scope = this.#scope.with(key, isIncluded);
    if (scope === this.#scope) throw new TypeError(refusal);
    this.#scope = scope;
    if (this.#walk) this.touch(key === '' ? this.#walk.root : within(this.#walk.root, key));
  }

  touch(path?: string): void {
    this.#touched.add(path);
  }

  *observe(
    _known?: Found,
    allowedMounts?: AllowedMounts,
    now: Moment = { monotonic: 0 },
  ): Effects<Observation> {
    let chain = yield* resolveChain(this.path, allowedMounts);
    for (let walks = 0; walks < MAX_WALKS; walks += 1) {
      const { end } = chain;
      if (end.kind === 'missing') return this.#lost({ kind: 'missing', chain });
      if (end.kind !== 'found') return this.#lost({ ...end, chain });
      const scope = this.#scope;
      const relisted = [...this.#relisted];
      const touched = this.#take(`${chain.links} ${end.path} ${identityOf(end.stat)}`);
      const seen = yield* this.#walkAt(end.path, touched, scope, allowedMounts);
      if (seen.kind === 'disallowed') return this.#lost({ kind: 'disallowed', chain });
      if (seen.kind === 'tree') {
        const { listed } = seen.own;
        yield* this.#listings.take(listed, touched === 'all' ? listed.keys() : relisted, now);
        const found = yield* this.#foundOrUnreadable(chain, seen, touched, now);
        const isRegrouped = found.kind === 'found' ? this.#regrouped(scope) : undefined;
        return isRegrouped ? ({ ...found, isRegrouped } as Observation) : found;
      }
      if (seen.kind !== 'missing') return this.#lost({ kind: 'unreadable', chain, error: errorOf(seen) });
      this.touch();
      chain = yield* resolveChain(this.path, allowedMounts);
    }
    return this.#lost({ kind: 'unstable', chain });
  }

  readReplacement(path: string, calls: FileSystemCalls): Replacement | undefined {
    const key = this.#walk && keyBelow(this.#walk.root, path);
    return key === undefined ? undefined : this.#files.readReplacement(key, path, calls);
  }

  *observeSwap(): Effects<undefined> {
    // A swap of a volume in the tree is one of many things that may have happened.
  }

  /** See the table above. Where links have to be followed, that is left to `observe`. */
  *isUnchanged({ chain }: Found): Effects<boolean> {
    const walk = this.#walk;
    if (!walk) return false;
    for (const key of walk.unreadable.keys()) this.touch(within(walk.root, key));
    try {
      if (!(yield* areLinksUnchanged(chain))) this.touch();
    } catch {
      this.touch();
    }
    yield* this.#verify(walk);
    const isNothingNoted = this.#touched.isEmpty && this.#relisted.size === 0;
    return isNothingNoted && this.#files.isProven && walk.own.links.size === 0;
  }

  *#verify({ root, own }: TreeWalk): Effects<void> {
    const directories = new Map(this.#directoryTurns.next(own.listed, VERIFIED_AT_ONCE));
    for (const key of this.#listings.next(VERIFIED_AT_ONCE)) this.#relisted.add(key);
    const signature = own.listed.get('');
    if (signature !== undefined) directories.set('', signature);
    for (const [key, before] of directories) {
      if ((yield* signatureAt(key === '' ? root : within(root, key))) !== before) this.#relisted.add(key);
    }
    for (const [, { path, signature: before }] of this.#fileTurns.next(own.files, VERIFIED_AT_ONCE)) {
      if ((yield* signatureAt(path)) !== before) this.touch(path);
    }
  }

  /** The chain of the root with the directories of the tree, without its files. */
  *resolve(allowedMounts?: AllowedMounts): Effects<ResolvedChain> {
    const chain = yield* resolveChain(this.path, allowedMounts);
    this.touch();
    if (chain.end.kind !== 'found' || !chain.end.stat.isDirectory()) return chain;
    const seen = yield* walkDirectories(chain.end.path, this.#walkOptions(this.#scope, allowedMounts));
    return seen.kind === 'tree' ? this.#directories.chainOf(chain, seen) : chain;
  }

  #take(place: string): Places {
    const places = this.#touched.take();
    const isKnown = this.#walk !== undefined && place === this.#place;
    this.#place = place;
    return isKnown ? places : 'all';
  }

  #lost(observation: Observation): Observation {
    this.touch();
    this.#walk = undefined;
    this.#listings.forget();
    this.#last = undefined;
    return observation;
  }

  #regrouped(scope: TreeScope): Regrouped | undefined {
    const before = this.#shown ?? scope;
    this.#shown = scope;
    return before === scope ? undefined : (key) => before.includes(key) !== scope.includes(key);
  }

  #walkOptions(scope: TreeScope, allowedMounts: AllowedMounts): Parameters<typeof walkTree>[1] {
    const { followLinks } = this.#options;
    return { scope, followLinks, allowedMounts };
  }

  *#walkAt(
    root: string,
    touched: Places,
    scope: TreeScope,
    allowedMounts: AllowedMounts,
  ): Effects<TreeObservation> {
    const options = this.#walkOptions(scope, allowedMounts);
    const relisted = this.#relisted;
    this.#relisted = new Set();
    if (touched !== 'all' && this.#walk) return yield* rewalkTree(this.#walk, touched, options, relisted);
    // Compared with the walk before, so that what is equal remains the same object.
    const before = this.#walk?.root === root ? this.#walk : undefined;
    return before ? yield* rewalkTree(before, [root], options) : yield* walkTree(root, options);
  }

  *#foundOrUnreadable(
    chain: ResolvedChain,
    walk: TreeWalk,
    touched: Places,
    now: Moment,
  ): Effects<Observation> {
    try {
      return yield* this.#found(chain, walk, touched, now);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      const path = (error as NodeJS.ErrnoException).path ?? walk.root;
      return this.#lost({ kind: 'unreadable', chain, error: readingError(path, error) });
    }
  }

  *#found(chain: ResolvedChain, walk: TreeWalk, touched: Places, now: Moment): Effects<Observation> {
    const unsettled = yield* this.#files.take(walk.files, keysAt(touched, walk), now);
    this.#walk = walk;
    // They are checked again when they are due to be reported.
    for (const { path } of unsettled) this.touch(path);
    const { seen: files, states, version, limited } = this.#files;
    const placed = this.#directories.chainOf(chain, walk);
    const unreadable = unreadablePart(walk);
    if (this.#last?.files === files) return { ...this.#last, chain: placed, unreadable };
    this.#last = {
      kind: 'found',
      chain: placed,
      snapshot: new SetSnapshot({
        kind: 'tree',
        path: this.path,
        realPath: walk.root,
        revision: undefined,
        files: states,
      }),
      files,
      directories: new Map(),
      signature: String(version),
      remembered: true,
      unreadable,
      limited,
    };
    return this.#last;
  }
}

/** What became unreadable. What could never be read is left out of the tree. */
function unreadablePart({ root, files, unreadable }: TreeWalk): TargetError | undefined {
  for (const [key, errno] of unreadable) {
    const isKept = files.has(key) || [...files.keys()].some((file) => file.startsWith(`${key}/`));
    if (isKept) return readingError(within(root, key), Object.assign(new Error(errno), { code: errno }));
  }
  return undefined;
}

/** The keys of the touched files. */
function keysAt(touched: Places, { root, files, linked }: TreeWalk): Iterable<string> | 'all' {
  if (touched === 'all') return 'all';
  const own = [...touched].map((path) => keyBelow(root, path) ?? '').filter((key) => files.has(key));
  const behindLinks = [...linked.files].filter(([, { path }]) => touched.has(path)).map(([key]) => key);
  return [...own, ...behindLinks];
}

function errorOf(seen: Exclude<TreeObservation, { kind: 'tree' | 'disallowed' }>): TargetError {
  const { root, errno } = seen;
  if (seen.kind === 'not-directory') {
    const message = `Cannot read "${root}": it is not a directory, but a tree is watched`;
    return new TargetError('ERR_TARGET_NOT_DIRECTORY', root, message);
  }
  return readingError(root, Object.assign(new Error(errno), { code: errno }));
}
