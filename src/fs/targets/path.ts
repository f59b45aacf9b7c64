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
import { relative, resolve as resolvePath, sep } from 'node:path';

import { errnoOf, hasMoved } from '../../core/errno.js';
import type { Disk } from '../disk.js';
import { givenPath } from '../given-path.js';
import { globsIn, type IgnorePattern } from '../globs.js';
import type { Look } from '../look.js';
import { haveSameDirectories } from '../merge-directories.js';
import {
  MAX_ATTEMPTS,
  MOVED,
  type Consulted,
  type Found,
  type LookScope,
  type Moved,
  type Observation,
  type Regrouped,
  type Target,
} from '../observation.js';
import type { ReadLimits } from '../read-limits.js';
import { identityOf, isOld, isUnchanged } from '../file-identity.js';
import { isAsConsulted, resolve, type Resolution } from '../resolve.js';
import { FileSnapshot, SetSnapshot, type SetKind } from '../snapshot.js';
import { readingError, wrongPath } from '../target-error.js';
import { TreeScope } from '../tree-scope.js';
import { fileAt } from './file.js';
import { TreeFiles, type TreeReading } from './tree.js';
import { publishedIn, VolumeFiles, type VolumeReading } from './volume.js';

/** How a tree is watched. */
export interface TreeTargetOptions {
  readonly ignore: readonly IgnorePattern[];
  readonly followLinks: boolean;
  readonly content: boolean;
}

type FoundPath = Extract<Resolution, { kind: 'found' }>;

/** The target at a path. */
export class PathTarget implements Target {
  readonly path: string;
  readonly #limits: ReadLimits;
  readonly #tree: TreeTargetOptions | undefined;
  #scope: TreeScope;
  /** The scope at the last look that found something. */
  #shown: TreeScope | undefined;
  #volume: VolumeFiles | undefined;
  #files: TreeFiles | undefined;
  #last: Found | undefined;
  /** `Route.changesNs` of the last file; undefined if a later change might not show in it. */
  #changesNs: bigint | undefined;

  /**
   * @param path absolute.
   * @param tree how the directory is watched recursively, if it is.
   */
  constructor(path: string, limits: ReadLimits, tree?: TreeTargetOptions, scope?: TreeScope) {
    this.path = path;
    this.#limits = limits;
    this.#tree = tree;
    this.#scope = scope ?? (tree ? TreeScope.without(tree.ignore) : TreeScope.all);
  }

  get paths(): readonly string[] {
    return [this.path];
  }

  fresh(): PathTarget {
    return new PathTarget(this.path, this.#limits, this.#tree, this.#scope);
  }

  touch(path?: string): void {
    this.#files?.touch(path);
  }

  look(extent: LookScope, now: number): Look<Observation> {
    let attempts = 0;
    let consulted: Consulted = { directories: [] };
    /** The rest of a read that takes more than one step. */
    let rest: Look<Observation | Moved> | undefined;
    return {
      next: (disk) => {
        try {
          let found: Observation | Moved | undefined;
          if (rest) found = rest.next(disk);
          else if (extent === 'resync' && this.#isAsFound(disk)) found = this.#last;
          else {
            const at = resolve(this.path, attempts === 0 ? disk : disk.afresh);
            consulted = at.route;
            // The target of a link may have been removed before it was entered.
            if (at.kind === 'missing' && at.isGap && attempts === 0) found = MOVED;
            else if (at.kind === 'unreadable' && hasMoved(at.error.cause)) found = MOVED;
            else if (at.kind !== 'found') found = this.#lost(at);
            else if (at.stat.isFile()) found = this.#fileAt(at, now, disk);
            else if (at.stat.isDirectory()) rest = this.#directoryAt(at, extent, now, disk);
            else found = notAFile(at);
          }
          if (found?.kind !== 'moved') return found;
        } catch (error) {
          if (errnoOf(error) === undefined) throw error;
          const at = (error as NodeJS.ErrnoException).path ?? this.path;
          if (!hasMoved(error)) return { kind: 'unreadable', error: readingError(at, error), consulted };
        }
        rest = undefined;
        attempts += 1;
        return attempts === MAX_ATTEMPTS ? { kind: 'unstable', consulted } : undefined;
      },
    };
  }

  /** Whether the file that was found is still there, with the same content and by the same route. */
  #isAsFound(disk: Disk): boolean {
    const last = this.#last;
    if (last?.snapshot.kind !== 'file' || this.#changesNs === undefined) return false;
    const { inode, isTelling, isSteady } = FileSnapshot.stampOf(last.snapshot);
    const stat = isTelling && isSteady ? disk.lstat(last.snapshot.realPath) : undefined;
    return (
      stat !== undefined && isUnchanged(stat, inode) && isAsConsulted(last.consulted, this.#changesNs, disk)
    );
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
    const root = resolvePath(this.path);
    const key = relative(root, resolvePath(root, path)).replaceAll(sep, '/');
    if (key === '..' || key.startsWith('../') || resolvePath(root, key) !== resolvePath(root, path)) {
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

  #lost(found: Exclude<Resolution, FoundPath>): Observation {
    this.#files?.touch();
    if (found.kind === 'unreadable')
      return { kind: 'unreadable', error: found.error, consulted: found.route };
    return this.#missing(found.route, found);
  }

  #missing(
    consulted: Consulted,
    { isGap, changedNs }: { readonly isGap: boolean; readonly changedNs: bigint },
  ): Observation {
    return { kind: 'missing', isGap, changedNs, consulted, isRegrouped: this.#regrouped(this.#scope) };
  }

  #fileAt(found: FoundPath, now: number, disk: Disk): Observation | Moved {
    const { path: realPath, stat, entryNs, route } = found;
    const { links, turnedNs, revision } = route;
    if (this.#tree) {
      const error = wrongPath(realPath, 'it is not a directory, but a tree is watched');
      return { kind: 'unreadable', error, consulted: route };
    }
    const { maxContentBytes } = this.#limits;
    const place = { path: this.path, realPath, revision, links, turnedNs, entryNs };
    const before = this.#last?.snapshot;
    const known = before?.kind === 'file' ? before : undefined;
    const file = fileAt(place, stat, known, { kept: 'contents', maxContentBytes, now }, disk);
    if (!file) return MOVED;
    this.#volume = this.#files = undefined;
    this.#changesNs = isOld(route.changedNs, now) ? route.changesNs : undefined;
    if (file === known && this.#last && haveSameDirectories(this.#last.consulted, route)) return this.#last;
    const publishedNs = revision === undefined ? stat.ctimeNs : turnedNs;
    const consulted = { directories: route.directories };
    this.#last = { kind: 'found', snapshot: file, consulted, publishedNs };
    return this.#last;
  }

  #directoryAt(found: FoundPath, extent: LookScope, now: number, disk: Disk): Look<Observation | Moved> {
    const published = this.#tree ? undefined : publishedIn(found.path, found.stat, found.route, disk);
    if (published?.kind === 'missing') return answer(this.#missing(published.consulted, published));
    if (published?.kind === 'unreadable') return answer(published);
    if (published) {
      this.#volume ??= new VolumeFiles(this.path, this.#limits);
      return mapped(this.#volume.look(published, extent, now), (reading) => this.#foundVolume(reading));
    }
    const scope = this.#scope;
    this.#files ??= new TreeFiles({
      ...this.#limits,
      path: this.path,
      isRecursive: this.#tree !== undefined,
      followLinks: this.#tree?.followLinks === true,
      content: this.#tree?.content !== false,
      ignore: globsIn(this.#tree?.ignore ?? []),
    });
    return mapped(
      this.#files.look({ path: found.path, stat: found.stat, route: found.route }, scope, extent, now),
      (reading) => this.#foundFiles(reading, found, scope),
    );
  }

  #foundVolume(reading: VolumeReading | Moved): Observation | Moved {
    if (reading.kind === 'moved') return reading;
    const { files, limited, revision } = reading;
    this.#files = undefined;
    const publishedNs = revision.turnedNs;
    return this.#found('volume', revision.path, revision.name, files, {
      consulted: reading.consulted,
      limited,
      publishedNs,
    });
  }

  #foundFiles(reading: TreeReading, { path, stat, route }: FoundPath, scope: TreeScope): Observation | Moved {
    if (reading.kind === 'moved') return reading;
    if (reading.kind === 'gap') {
      const directories = [...route.directories, { path, identity: identityOf(stat) }];
      return this.#missing({ directories }, { isGap: true, changedNs: stat.mtimeNs });
    }
    this.#volume = undefined;
    const isRegrouped = this.#regrouped(scope);
    const kind = this.#tree ? 'tree' : 'directory';
    const { files, limited, unreadable } = reading;
    const rest = { consulted: reading, limited, unreadable, isRegrouped };
    return this.#found(kind, path, undefined, files, rest);
  }

  #found(
    kind: SetKind,
    realPath: string,
    revision: string | undefined,
    files: ReadonlyMap<string, FileSnapshot>,
    rest: Omit<Found, 'kind' | 'snapshot'>,
  ): Found {
    const { path } = this;
    const last = this.#last;
    const before = last?.snapshot;
    const isSame =
      before?.kind === kind &&
      before.files === files &&
      before.realPath === realPath &&
      before.revision === revision;
    const snapshot = isSame ? before : new SetSnapshot({ kind, path, realPath, revision, files });
    if (
      last &&
      isSame &&
      !rest.isRegrouped &&
      last.unreadable === rest.unreadable &&
      haveSameDirectories(last.consulted, rest.consulted)
    )
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

/** A look that has ended. */
function answer(observation: Observation): Look<Observation> {
  return { next: () => observation };
}

function mapped<T extends object, U extends object>(look: Look<T>, map: (found: T) => U): Look<U> {
  return {
    next: (disk) => {
      const found = look.next(disk);
      return found && map(found);
    },
  };
}
