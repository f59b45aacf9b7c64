/**
 * A directory, with the files in it or with everything below it. It remembers what it found, so that a look visits only
 * what may have changed.
 *
 * | a look because of                             | visits                                                            |
 * |-----------------------------------------------|-------------------------------------------------------------------|
 * | hints that name entries                       | these entries, and the links that lead through them; in a plain   |
 * |                                               | directory of at most `VERIFIED_AT_ONCE` files, all files, so that |
 * |                                               | files replaced together are one change                            |
 * | a resync                                      | what was unreadable, and the next `VERIFIED_AT_ONCE` directories, |
 * |                                               | files and links                                                   |
 * | anything else, more than `MAX_TOUCHED` hints, | everything                                                        |
 * | another directory at the root                 |                                                                   |
 *
 * The table in tree-look.ts shows what happens to a visited entry.
 */

import { basename, dirname } from '../../core/ports/platform-path.js';
import { nextSlice, type Steps } from '../../core/scheduling/steps.js';
import type { WatchedDirectory } from '../../core/ports/watch-backend.js';
import type { Disk } from '../disk.js';
import { identityOf } from '../file-identity.js';
import { haveSameDirectories, type Consulted } from '../consulted.js';
import { VERIFIED_AT_ONCE, type Extent } from '../observation.js';
import { Rotation } from '../rotation.js';
import { FileMap } from '../file-map.js';
import type { Files, FileSnapshot } from '../snapshot.js';
import type { TargetError } from '../target-error.js';
import { childOf, parentOf, type TreeScope } from '../tree-scope.js';
import { isUserVisible } from '../volume-layout.js';
import { TreeLook, type TreeLookResult } from './tree-look.js';
import { TreeNodes, type TreeDirectory, type TreeOptions } from './tree-nodes.js';
import { TreeVisits } from './tree-visits.js';
import type { ReachedDirectory } from './volume.js';

/** The files that a look has found. */
export interface TreeReading {
  /** By key. The same object until something changes. */
  readonly files: Files;
  readonly directories: readonly WatchedDirectory[];
  readonly limited: string | undefined;
  readonly unreadable: TargetError | undefined;
  /** See `Found`. */
  readonly unlinked: ReadonlySet<string> | undefined;
}

/** With more places than this, visiting everything is faster. */
const MAX_TOUCHED = 1_000;

/** Remembers the files of one directory. */
export class TreeFiles {
  readonly #options: TreeOptions;
  #nodes: TreeNodes;
  #place = '';
  #touched: Set<string> | 'all' = 'all';
  #rescoped = new Set<string>();
  readonly #turns = {
    directories: new Rotation<TreeDirectory>(),
    files: new Rotation<FileSnapshot>(),
    links: new Rotation<unknown>(),
  };
  #files = FileMap.empty;
  #watched: { readonly route: Consulted; readonly list: readonly WatchedDirectory[] } | undefined;

  constructor(options: TreeOptions) {
    this.#options = options;
    this.#nodes = new TreeNodes(options, options.path);
  }

  /** Something may have happened at this absolute path, or anywhere. */
  touch(path?: string): void {
    if (this.#touched === 'all') return;
    if (path === undefined || this.#touched.size === MAX_TOUCHED) this.#touched = 'all';
    else this.#touched.add(path);
  }

  /** From now on, this key and everything below it belongs to the tree, or no longer does. */
  rescope(key: string): void {
    this.#rescoped.add(key);
  }

  *look(
    root: ReachedDirectory,
    scope: TreeScope,
    extent: Extent,
    disk: Disk,
  ): Steps<TreeReading | Exclude<TreeLookResult, 'read'>> {
    const place = `${root.way.links} ${root.path} ${identityOf(root.stat)}`;
    if (place !== this.#place) {
      this.#nodes = new TreeNodes(this.#options, root.path);
      this.#files = FileMap.empty;
      this.#touched = 'all';
      this.#place = place;
    }
    const touched = extent === 'all' ? 'all' : this.#touched;
    this.#touched = new Set();
    const isFull = touched === 'all';
    const rescoped = this.#rescoped;
    this.#rescoped = new Set();
    const [nodes, options] = [this.#nodes, this.#options];
    const visits = new TreeVisits(nodes);
    // First, because a hint must not lead into a removed part.
    for (const key of rescoped) {
      yield* nodes.clear(key);
      visits.visit(this.#shown(key));
    }
    if (isFull) visits.visit('');
    else this.#visitTouched(touched, visits);
    if (extent === 'resync') this.#visitNext(visits);
    const look = new TreeLook({ nodes, options, root, scope, extent: isFull ? 'all' : extent }, visits);
    // Until it has ended well, everything may have changed.
    let end: TreeLookResult | undefined;
    try {
      end = yield* look.run(disk);
    } finally {
      if (end !== 'read') {
        this.touch();
        nodes.doubt(look.listed);
      }
    }
    return end === 'read' ? yield* this.#reading(root) : end;
  }

  /** The part of a key whose directory is listed. */
  #shown(key: string): string {
    let shown = key;
    while (shown !== '' && !this.#nodes.directories.has(parentOf(shown))) shown = parentOf(shown);
    return shown;
  }

  #visitTouched(touched: ReadonlySet<string>, visits: TreeVisits): void {
    for (const path of touched) {
      const listed = this.#nodes.directoryAt(path);
      if (listed) visits.relist(listed.key);
      this.#visitEntry(path, visits);
      visits.visitLinksThrough(path);
    }
  }

  /** The entry of a listed directory at or above this path. */
  #visitEntry(path: string, visits: TreeVisits): void {
    for (let place = path; place !== dirname(place); place = dirname(place)) {
      const directory = this.#nodes.directoryAt(dirname(place));
      if (!directory) continue;
      const name = basename(place);
      const isSmall = !this.#options.isRecursive && directory.names.size <= VERIFIED_AT_ONCE;
      if (directory.volume || !isUserVisible(name) || isSmall) visits.relist(directory.key);
      else visits.visit(childOf(directory.key, name));
      return;
    }
  }

  /** What a resync verifies. */
  #visitNext(visits: TreeVisits): void {
    const { directories, files, routes, unreadable } = this.#nodes;
    for (const key of unreadable.keys()) visits.relist(key);
    for (const [key] of this.#turns.directories.next(directories, VERIFIED_AT_ONCE)) visits.visit(key);
    for (const [key] of this.#turns.files.next(files, VERIFIED_AT_ONCE)) visits.visit(key);
    for (const [key] of this.#turns.links.next(routes.all, VERIFIED_AT_ONCE)) visits.visit(key);
  }

  /** The directories to listen to, as far as the last look has come: also if that has failed. */
  watched({ directories }: ReachedDirectory): readonly WatchedDirectory[] {
    return this.#nodes.watched(directories);
  }

  *#reading(root: ReachedDirectory): Steps<TreeReading> {
    const nodes = this.#nodes;
    const { directories } = root;
    const { changed, files } = nodes;
    // What changes meanwhile is of the next look.
    nodes.changed = new Set();
    this.#files = yield* this.#files.with(changesOf(changed, files));
    if (
      nodes.haveDirectoriesChanged ||
      !this.#watched ||
      !haveSameDirectories(this.#watched.route, { directories })
    ) {
      this.#watched = { route: { directories }, list: this.watched(root) };
    }
    nodes.haveDirectoriesChanged = false;
    yield* nextSlice();
    return {
      files: this.#files,
      directories: this.#watched.list,
      limited: nodes.limited,
      unreadable: nodes.unreadablePart,
      unlinked: nodes.unlinked.size > 0 ? new Set(nodes.unlinked.values()) : undefined,
    };
  }
}

function* changesOf(
  changed: Iterable<string>,
  files: Files,
): Iterable<readonly [string, FileSnapshot | undefined]> {
  for (const key of changed) yield [key, files.get(key)];
}
