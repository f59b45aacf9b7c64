/**
 * The target at one path, whatever is there at the time.
 *
 * | the path leads to                         | it is                                                              |
 * |-------------------------------------------|--------------------------------------------------------------------|
 * | a file                                    | that file; for a tree, unreadable                                  |
 * | a directory                               | a volume, or the files in it; for a tree, with everything below it |
 * | nothing, or a volume in the gap of a swap | missing                                                            |
 * | anything else                             | unreadable                                                         |
 */

import { keyBelow, told, toPlatform } from '../../core/ports/platform-path.js';
import { errnoOf, hasMoved } from '../../core/errors/errno.js';
import type { Steps } from '../../core/scheduling/steps.js';
import { attempts, MOVED, type Moved } from '../attempts.js';
import { consultedBy, haveSameDirectories, type Consulted } from '../consulted.js';
import type { Disk } from '../disk.js';
import { givenPath } from '../absolute-path.js';
import type { IgnorePattern } from '../globs.js';
import type { Found, Extent, Observation, Regrouped, Target } from '../observation.js';
import { limitOf, type ReadLimits } from '../read-limits.js';
import { identityOf } from '../file-identity.js';
import { resolve, wereRetargeted, type Resolution } from '../resolve.js';
import { SetSnapshot, type FileSnapshot, type SetKind } from '../snapshot.js';
import { readingError, wrongPath } from '../target-error.js';
import { TreeScope } from '../tree-scope.js';
import { fileAt } from './file.js';
import { TreeFiles } from './tree.js';
import { publishedIn, KnownVolume } from './volume.js';

/** How a tree is watched. */
export interface TreeTargetOptions {
  readonly ignore: readonly IgnorePattern[];
  readonly include?: readonly IgnorePattern[] | undefined;
  readonly followLinks: boolean;
  readonly content: boolean;
}

type FoundPath = Extract<Resolution, { kind: 'found' }>;

/** The target at a path. */
export class PathTarget implements Target {
  readonly path: string;
  readonly #at: string;
  readonly #limits: ReadLimits;
  readonly #tree: TreeTargetOptions | undefined;
  #scope: TreeScope;
  /** The scope at the last look that found something. */
  #shown: TreeScope | undefined;
  #volume: KnownVolume | undefined;
  #files: TreeFiles | undefined;
  #last: Found | undefined;

  /**
   * @param path absolute.
   * @param tree how the directory is watched recursively, if it is.
   */
  constructor(path: string, limits: ReadLimits, tree?: TreeTargetOptions, scope?: TreeScope) {
    this.path = told(path);
    this.#at = path;
    this.#limits = limits;
    this.#tree = tree;
    this.#scope = scope ?? (tree ? TreeScope.without(tree.ignore, tree.include) : TreeScope.all);
  }

  get paths(): readonly string[] {
    return [this.#at];
  }

  fresh(): PathTarget {
    return new PathTarget(this.#at, this.#limits, this.#tree, this.#scope);
  }

  touch(path?: string): void {
    this.#files?.touch(path);
  }

  look(extent: Extent, shared: Disk): Steps<Observation> {
    const { consulted } = this.#last ?? { consulted: { directories: [] } };
    const seen = { consulted };
    return attempts(shared, seen, (disk) => this.#attempt(extent, disk, seen));
  }

  /** @param seen receives what was consulted. */
  *#attempt(extent: Extent, disk: Disk, seen: { consulted: Consulted }): Steps<Observation | Moved> {
    try {
      const at = yield* resolve(this.#at, disk);
      seen.consulted = at.route;
      // The target of a link may have been removed before it was entered.
      if (at.kind === 'missing' && at.isGap && (yield* wereRetargeted(at.route.way.links, disk.afresh)))
        return MOVED;
      if (at.kind === 'unreadable' && hasMoved(at.error.cause)) return MOVED;
      if (at.kind !== 'found') this.#files?.touch();
      if (at.kind === 'unreadable') return { kind: 'unreadable', error: at.error, consulted: at.route };
      if (at.kind === 'missing') return this.#missing(at.route, at);
      if (at.stat.isFile()) return yield* this.#fileAt(at, disk);
      return at.stat.isDirectory() ? yield* this.#directoryAt(at, extent, disk, seen) : notAFile(at);
    } catch (error) {
      // The next look sees what this one was to see.
      this.#files?.touch();
      if (errnoOf(error) === undefined || hasMoved(error)) throw error;
      const path = (error as NodeJS.ErrnoException).path ?? this.path;
      return { kind: 'unreadable', error: readingError(path, error), consulted: seen.consulted };
    }
  }

  /** A relative path is relative to the root, like a key. */
  add(given: string | URL): void {
    const key = this.#keyOf('add', given);
    this.#setScope(key, true, `Cannot add "${key}": it is already in the tree`);
  }

  /** See `add`. */
  remove(given: string | URL): void {
    const key = this.#keyOf('remove', given);
    if (key === '')
      throw new TypeError(`Cannot remove "${this.path}": it is the root of the tree; close the watcher`);
    this.#setScope(key, false, `Cannot remove "${key}": it is not in the tree`);
  }

  #keyOf(what: string, given: string | URL): string {
    if (!this.#tree) {
      throw new TypeError(
        `Cannot ${what} a path: "${this.path}" is neither a group nor a tree; watch an array of paths, or a directory with "recursive"`,
      );
    }
    const path = givenPath('path', given, 'to exclude what a glob matches, use the option "ignore"');
    const key = keyBelow(this.#at, path);
    if (key === undefined) {
      throw new TypeError(
        `Cannot ${what} "${path}": it is not below "${this.path}", the root of the tree; use another watcher for it`,
      );
    }
    if (this.#scope.ignores(key)) {
      throw new TypeError(`Cannot ${what} "${key}": the option "ignore" excludes it from the tree`);
    }
    return key;
  }

  #setScope(key: string, isIncluded: boolean, refusal: string): void {
    const scope = this.#scope.with(key, isIncluded);
    if (scope === this.#scope) throw new TypeError(refusal);
    this.#scope = scope;
    this.#files?.rescope(key);
  }

  #missing(
    consulted: Consulted,
    { isGap, changedNs }: { readonly isGap: boolean; readonly changedNs: bigint },
  ): Observation {
    return { kind: 'missing', isGap, changedNs, consulted, isRegrouped: this.#regrouped(this.#scope) };
  }

  *#fileAt(found: FoundPath, disk: Disk): Steps<Observation | Moved> {
    const { path: realPath, stat, route } = found;
    if (this.#tree) {
      const error = wrongPath(realPath, 'it is not a directory, but a tree is watched');
      return { kind: 'unreadable', error, consulted: route };
    }
    const { maxContentBytes } = this.#limits;
    const place = { path: this.#at, realPath, way: route.way };
    const before = this.#last?.snapshot;
    const known = before?.kind === 'file' ? before : undefined;
    const file = yield* fileAt(place, stat, known, { kept: 'contents', maxContentBytes }, disk);
    if (!file) return MOVED;
    this.#volume = this.#files = undefined;
    if (file === known && this.#last && haveSameDirectories(this.#last.consulted, route)) return this.#last;
    const publishedNs = route.way.revision === undefined ? stat.ctimeNs : route.way.retargetedNs;
    const consulted = { directories: route.directories };
    const limited = limitOf(file.size, this.#limits);
    this.#last = { kind: 'found', snapshot: file, consulted, limited, publishedNs };
    return this.#last;
  }

  *#directoryAt(
    { path, stat, route }: FoundPath,
    extent: Extent,
    disk: Disk,
    seen: { consulted: Consulted },
  ): Steps<Observation | Moved> {
    const reached = { path, stat, way: route.way, directories: route.directories };
    const published = this.#tree ? undefined : yield* publishedIn(reached, disk);
    if (published === MOVED) return MOVED;
    if (published?.kind === 'missing') return this.#missing(published.consulted, published);
    if (published?.kind === 'unreadable') return published;
    if (published) {
      const volume = (this.#volume ??= new KnownVolume(this.#at, this.#limits));
      seen.consulted = consultedBy(() => [published.consulted, { directories: volume.through }]);
      const reading = yield* volume.look(published, extent, disk);
      if (reading === MOVED) return MOVED;
      this.#files = undefined;
      const { path: realPath, way } = published;
      return this.#found('volume', realPath, way.revision, reading.files, {
        consulted: volume.through.length === 0 ? published.consulted : seen.consulted,
        limited: reading.limited,
        publishedNs: way.retargetedNs,
      });
    }
    const scope = this.#scope;
    const tree = (this.#files ??= new TreeFiles({
      ...this.#limits,
      path: this.#at,
      isRecursive: this.#tree !== undefined,
      followLinks: this.#tree?.followLinks === true,
      content: this.#tree?.content !== false,
    }));
    seen.consulted = {
      get directories() {
        return tree.watched(reached);
      },
    };
    const reading = yield* tree.look(reached, scope, extent, disk);
    if (reading === MOVED) return MOVED;
    if (reading === 'unstable') return { kind: 'unstable', consulted: route };
    if (reading === 'gap') {
      const directories = [...route.directories, { path, identity: identityOf(stat) }];
      return this.#missing({ directories }, { isGap: true, changedNs: stat.mtimeNs });
    }
    this.#volume = undefined;
    const { files, limited, unreadable, unlinked } = reading;
    if (unreadable && files.size === 0) return { kind: 'unreadable', error: unreadable, consulted: reading };
    return this.#found(this.#tree ? 'tree' : 'directory', path, undefined, files, {
      consulted: reading,
      limited,
      unreadable,
      unlinked,
      isRegrouped: this.#regrouped(scope),
    });
  }

  #found(
    kind: SetKind,
    place: string,
    revision: string | undefined,
    files: ReadonlyMap<string, FileSnapshot>,
    rest: Omit<Found, 'kind' | 'snapshot'>,
  ): Found {
    const { path } = this;
    const realPath = toPlatform?.(place) ?? place;
    const last = this.#last;
    const known = last?.snapshot.kind === kind && last.snapshot.files === files ? last.snapshot : undefined;
    const isSame = known?.realPath === realPath && known.revision === revision;
    const snapshot = isSame ? known : new SetSnapshot({ kind, path, realPath, revision, files });
    const isSameRest =
      !rest.isRegrouped && last?.unreadable === rest.unreadable && !last?.unlinked === !rest.unlinked;
    const isSameLimit = last?.limited === rest.limited;
    if (last && isSame && isSameRest && isSameLimit && haveSameDirectories(last.consulted, rest.consulted))
      return last;
    const { isRegrouped, ...others } = rest;
    this.#last = { kind: 'found', snapshot, ...others };
    return isRegrouped ? { ...this.#last, isRegrouped } : this.#last;
  }

  #regrouped(scope: TreeScope): Regrouped | undefined {
    const before = this.#shown ?? scope;
    this.#shown = scope;
    return before === scope ? undefined : (key) => before.includes(key) !== scope.includes(key);
  }
}

function notAFile({ path, route }: FoundPath): Observation {
  const error = wrongPath(path, 'it is neither a regular file nor a directory');
  return { kind: 'unreadable', error, consulted: route };
}
