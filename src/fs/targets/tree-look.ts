/**
 * One look at a directory or a tree.
 *
 * | an entry that is visited | then                                                                                     |
 * |--------------------------|------------------------------------------------------------------------------------------|
 * | a file                   | is read, unless it is known (file.ts)                                                    |
 * | a directory              | is listed if it has changed; in a plain directory it is ignored                          |
 * | a volume, or a directory | is read as a whole (volume.ts), and shows only its keys; in the gap of a swap, nothing   |
 * | in one                   |                                                                                          |
 * | a link to a file         | counts as a file; the entries that the link leads through are listened to                |
 * | a link to a directory    | is entered with `followLinks`. Each directory has one key: its own path in the tree, or  |
 * |                          | the first by name among those through links                                              |
 * | unreadable               | a directory, volume or link keeps its known entries; a file of a tree is compared by     |
 * |                          | inode and times; a file of a plain directory makes the whole directory unreadable        |
 * | gone                     | is removed, with everything below it                                                     |
 * | replaced while it is     | is visited again, with everything that was found through a link that was retargeted in   |
 * | read                     | the meantime: so what lies in one volume comes from one revision                         |
 */
import type { BigIntStats } from 'node:fs';

import { errnoOf, hasMoved, isExhausted } from '../../core/errors/errno.js';
import { insidePath } from '../../core/ports/platform-path.js';
import { nextSlice, slices, type Steps } from '../../core/scheduling/steps.js';
import { within } from '../absolute-path.js';
import { MAX_ATTEMPTS, MOVED, type Moved } from '../attempts.js';
import { directoriesAbove, type ConsultedDirectory } from '../consulted.js';
import type { Disk } from '../disk.js';
import { identityOf, inodeOf, timestampsAreReliable, isUnchanged } from '../file-identity.js';
import { byVisibility, entriesOf, isFolded, namesOf, type Entry } from '../listing.js';
import { VERIFIED_AT_ONCE } from '../observation.js';
import { isInRevision, joinWays, resolve, wereRetargeted } from '../resolve.js';
import { FileSnapshot } from '../snapshot.js';
import { readingError } from '../target-error.js';
import { childOf, nameOf } from '../tree-scope.js';
import { DATA_LINK } from '../volume-layout.js';
import { fileAt, unreadFile, type FilePlace, type FileWanted } from './file.js';
import type { TreeDirectory, TreeLookOptions, TreeNodes, Visited } from './tree-nodes.js';
import type { TreeVisits } from './tree-visits.js';
import { isDataLink, isVolumeInGap, looksLikeVolume, readTreeVolume } from './tree-volume.js';
import { KnownVolume } from './volume.js';

export type TreeLookResult =
  | 'read'
  /** The root is a volume that currently has no revision. */
  | 'gap'
  /** Something was replaced during every attempt. */
  | 'unstable'
  /** The root was replaced. */
  | Moved;

/** What listing a directory has shown. */
interface Listed extends Pick<TreeDirectory, 'names' | 'isHiding'> {
  readonly isVolume: boolean;
  /** After the inode was looked up, and before the listing, monotonic ms. */
  readonly seenAt: number;
}

/** Visits entries until nothing is left to visit. */
export class TreeLook {
  /** Directories that this attempt has listed, each once unless it changes meanwhile. */
  readonly listed = new Set<string>();
  readonly #look: TreeLookOptions;
  readonly #nodes: TreeNodes;
  readonly #visits: TreeVisits;
  /** Links are followed last, because a directory with its own path in the tree is not entered through a link. */
  readonly #links = new Set<string>();
  readonly #unlisted: Visited[] = [];
  readonly #volumes: Visited[] = [];
  #isLastAttempt = false;

  /** @param visits what to visit; the entries that this leads to are added. */
  constructor(look: TreeLookOptions, visits: TreeVisits) {
    this.#look = look;
    this.#nodes = look.nodes;
    this.#visits = visits;
  }

  *run(shared: Disk): Steps<TreeLookResult> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      this.#isLastAttempt = attempt === MAX_ATTEMPTS;
      const disk = attempt === 1 ? shared : shared.afresh;
      for (let round = 0; round < MAX_ATTEMPTS; round += 1) {
        const end = yield* this.#visitAll(disk);
        if (end) return end;
        this.#visits.visitConsequences();
        if (this.#visits.isEmpty) break;
      }
      const proof = disk.afresh;
      if (yield* wereRetargeted(this.#look.root.way.links, proof)) return MOVED;
      if (yield* this.#visits.areProven(proof)) return 'read';
      // Nothing else of this attempt counts in the next one.
      this.#visits.startOver();
      this.listed.clear();
    }
    return 'unstable';
  }

  *#visitAll(disk: Disk): Steps<'gap' | Moved | undefined> {
    for (;;) {
      yield* nextSlice();
      for (const key of this.#visits.taken()) {
        if ((yield* this.#visit(key, disk)) === MOVED) return MOVED;
        yield* nextSlice();
      }
      const unlisted = this.#unlisted.pop();
      const volume = unlisted ? undefined : this.#volumes.pop();
      if (unlisted) {
        const end = yield* this.#list(unlisted, disk);
        if (end) return end;
      } else if (volume) yield* readTreeVolume(volume, this.#look, this.#visits, this.#isLastAttempt, disk);
      else if (this.#links.size === 0) return undefined;
      else yield* this.#followLinks(disk);
    }
  }

  *#visit(key: string, disk: Disk): Steps<Moved | undefined> {
    const { root, scope, options } = this.#look;
    const parent = key === '' ? undefined : this.#nodes.parentOf(key);
    if (key !== '' && !parent) return;
    // The files of a volume are those of its revision.
    if (parent?.volume) {
      this.#visits.visit(parent.key);
      return;
    }
    if (key !== '' && scope.leavesOut(key)) {
      yield* this.#nodes.clear(key);
      return;
    }
    const path = parent ? within(parent.path, nameOf(key)) : root.path;
    const way = parent?.way ?? root.way;
    let stat: BigIntStats | undefined;
    try {
      stat = yield* disk.lstat(path);
      // An event, or a look that waits for it to come back, may name an entry otherwise than the listing.
      if (
        stat &&
        parent?.names.has(nameOf(key)) === false &&
        (yield* isFolded(parent.path, nameOf(key), stat, disk))
      ) {
        yield* this.#nodes.clear(key);
        this.#visits.relist(parent.key);
        return;
      }
    } catch (error) {
      this.#unreadable(key, path, error);
      return;
    }
    if (key === '' && !stat?.isDirectory()) return MOVED;
    if (stat?.isSymbolicLink()) {
      this.#links.add(key);
      this.#nodes.name(key);
      return;
    }
    this.#nodes.removeLink(key);
    if (stat?.isDirectory()) {
      const isLinked = parent?.isLinked === true;
      yield* this.#directory({ key, path, stat, way, isLinked, directories: [] });
    } else if (stat?.isFile() && scope.takes(key)) {
      yield* this.#file(key, { path: within(options.path, key), realPath: path, way }, stat, disk);
    } else {
      if (!stat && parent?.names.has(nameOf(key))) this.#visits.gone(key, path);
      yield* this.#nodes.clear(key);
    }
  }

  /** Returns whether the file could be read, or was replaced. */
  *#file(key: string, place: FilePlace, stat: BigIntStats, disk: Disk): Steps<boolean> {
    let isRead = true;
    const known = this.#nodes.files.get(key);
    const { maxContentBytes, isRecursive } = this.#look.options;
    const wanted: FileWanted = { kept: this.#nodes.kept, maxContentBytes };
    let file: FileSnapshot | undefined;
    try {
      file = yield* fileAt(place, stat, known, wanted, disk);
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error) || !isRecursive) throw error;
      if (!hasMoved(error) || this.#isLastAttempt) {
        isRead = false;
        const before = known && FileSnapshot.stampOf(known);
        const isSame = before?.isSteady === true && isUnchanged(stat, before.inode);
        file = isSame ? known : yield* unreadFile(place, stat, known, disk, true);
      }
    }
    // It was replaced after it was found.
    if (!file) {
      this.#visits.moved(key);
      return true;
    }
    yield* this.#nodes.clearDirectory(key);
    this.#nodes.setFile(key, file);
    this.#nodes.name(key);
    return isRead;
  }

  *#directory(visited: Visited): Steps<void> {
    const { key, path, stat, way, isLinked } = visited;
    if (!this.#look.options.isRecursive && key !== '') {
      this.#nodes.remove(key);
      return;
    }
    if (isLinked && this.#nodes.isAlias(key, identityOf(stat), isLinked)) return;
    const known = this.#nodes.directories.get(key);
    const isSame =
      known?.identity === identityOf(stat) && known.path === path && known.way.links === way.links;
    if (isInRevision(way, path)) {
      this.#nodes.removeFile(key);
      if (this.#nodes.isAlias(key, identityOf(stat), isLinked)) return;
      const names = known?.names ?? new Set<string>();
      this.#setDirectory(visited, { names, isHiding: true, isVolume: true, seenAt: 0 });
      this.#volumes.push(visited);
    } else {
      const isListed = this.listed.has(key);
      const isAsListed =
        isSame && (isListed || known.timestampsAreReliable) && isUnchanged(stat, known.inode);
      const isAsked = !isListed && (this.#look.extent === 'all' || this.#visits.isRelisted(key));
      if (!isSame) yield* this.#nodes.clear(key);
      if (isAsked || !isAsListed || this.#nodes.unreadable.has(key)) this.#unlisted.push(visited);
      else if (known.volume) this.#volumes.push(visited);
    }
    this.#nodes.name(key);
  }

  *#list(visited: Visited, disk: Disk): Steps<'gap' | Moved | undefined> {
    const { key, path } = visited;
    const { isRecursive } = this.#look.options;
    let stat: BigIntStats | undefined;
    let entries: readonly Entry[] | undefined;
    const parent = this.#nodes.parentOf(key);
    // Since it was found, the directory above it was removed, or listed without it, or became a volume, which shows
    // only its keys.
    if (key !== '' && (!parent?.names.has(nameOf(key)) || parent.volume)) return;
    const known = this.#nodes.directories.get(key);
    let seenAt = 0;
    try {
      stat = yield* disk.lstat(path);
      seenAt = disk.clock.monotonic();
      if (stat && this.#nodes.isAlias(key, identityOf(stat), visited.isLinked)) return;
      const before = known?.volume ? [DATA_LINK] : known?.names;
      entries = stat?.isDirectory() ? yield* entriesOf(path, before, stat, disk) : undefined;
    } catch (error) {
      this.#unreadable(key, path, error);
      return;
    }
    if (!stat || !entries) {
      if (key === '') return MOVED;
      this.#visits.gone(key, path);
      yield* this.#nodes.clearDirectory(key);
      return;
    }
    const { visible, hidden } = yield* byVisibility(entries);
    const isVolume = isRecursive && hidden.some(isDataLink);
    if (!isRecursive && (yield* looksLikeVolume(path, visible, hidden, disk))) return 'gap';
    const isGap = isRecursive && isVolumeInGap(hidden);
    const isHiding = hidden.length > 0 && (!isRecursive || isVolume || isGap || known?.isHiding === true);
    const shown = isHiding ? visible : entries;
    const names = isVolume ? new Set(known?.names) : yield* namesOf(shown);
    if (known?.volume && !isVolume) this.#visits.visitLinksThrough(path);
    if (!isVolume !== !known?.volume) yield* this.#nodes.clearDirectory(key);
    else yield* this.#nodes.keep(key, names);
    this.#nodes.setReadable(key);
    this.listed.add(key);
    this.#setDirectory({ ...visited, stat }, { names, isHiding, isVolume, seenAt });
    if (isVolume) this.#volumes.push({ ...visited, stat });
    else yield* this.#visitListed(key, shown);
    // In the gap of a swap, its links must not be read through the revision that is published meanwhile.
    const isInGap = isHiding && !hidden.some(({ name }) => name === DATA_LINK);
    this.#visits.listed(key, isInGap ? within(path, DATA_LINK) : undefined);
    return;
  }

  #setDirectory(
    { key, path, way, stat, isLinked }: Visited,
    { names, isHiding, isVolume, seenAt }: Listed,
  ): void {
    const { options } = this.#look;
    const known = this.#nodes.directories.get(key);
    const volume = isVolume
      ? (known?.volume ?? new KnownVolume(within(options.path, key), options))
      : undefined;
    const since = known && isUnchanged(known.inode, stat) ? known.since : seenAt;
    const reliable = timestampsAreReliable(since, seenAt);
    const stamp = { inode: inodeOf(stat), since, timestampsAreReliable: reliable };
    const place = { key, path, way, identity: identityOf(stat), isLinked };
    this.#nodes.setDirectory({ ...place, ...stamp, names, isHiding, volume });
  }

  /** In a large directory, files with known names are visited only for hints, and in turn by resyncs. */
  *#visitListed(key: string, entries: readonly Entry[]): Steps<void> {
    const isPartial =
      this.#look.extent !== 'all' && entries.length > VERIFIED_AT_ONCE && !this.#visits.isRelisted(key);
    const slice = slices();
    for (const entry of entries) {
      yield* slice();
      const child = childOf(key, entry.name);
      if (!isPartial || !entry.isFile() || !this.#nodes.files.has(child)) this.#visits.visit(child);
    }
  }

  *#followLinks(disk: Disk): Steps<void> {
    const keys = [...this.#links].sort();
    this.#links.clear();
    for (const key of keys) {
      yield* this.#follow(key, disk);
      yield* nextSlice();
    }
    // The last one is listed first. Of a directory that many of them lead to, the others then need not be listed.
    this.#unlisted.reverse();
  }

  *#follow(key: string, disk: Disk): Steps<void> {
    const { options, scope } = this.#look;
    const parent = this.#nodes.parentOf(key);
    // Since it was found, the directory was listed without it.
    if (!parent?.names.has(nameOf(key)) || parent.volume) return;
    const unlinkedBefore = this.#nodes.unlinked.get(key);
    const link = yield* resolve(within(parent.path, nameOf(key)), disk);
    const { route } = link;
    let directories: readonly ConsultedDirectory[] = route.directories;
    const way = joinWays(parent.way, route.way);
    this.#visits.notice(key, way, link.kind === 'missing');
    const mayBeIn = options.followLinks || scope.takes(key);
    try {
      if (link.kind === 'found' && link.stat.isFile() && scope.takes(key)) {
        const { path: realPath, stat } = link;
        const place = { path: within(options.path, key), realPath, way };
        const isRead = yield* this.#file(key, place, stat, disk);
        if (!isRead) directories = [...directories, ...(yield* directoriesAbove(realPath, disk.afresh))];
      } else if (link.kind === 'found' && link.stat.isDirectory() && options.followLinks) {
        yield* this.#directory({ key, path: link.path, stat: link.stat, way, directories, isLinked: true });
      } else if (link.kind === 'unreadable' && link.error.cause !== undefined && mayBeIn) {
        const { path: shown, cause } = link.error;
        const path = insidePath(shown);
        this.#unreadable(key, path, cause);
        directories = [...directories, ...(yield* directoriesAbove(path, disk.afresh))];
      } else yield* this.#nodes.clear(key);
    } finally {
      this.#nodes.setLink(key, directories);
    }
    const unlinkedIn = link.kind === 'missing' ? link.unlinkedIn : undefined;
    this.#nodes.setUnlinked(key, unlinkedIn);
    // The others no longer wait for it, and the volume may have been swapped.
    if (unlinkedBefore !== undefined && unlinkedIn === undefined)
      this.#visits.visitLinksThrough(unlinkedBefore);
    this.#visits.followed(key, way.links, link.kind === 'missing' ? link.path : undefined);
  }

  /** An entry that cannot be looked up, or a directory that cannot be listed. */
  #unreadable(key: string, path: string, error: unknown): void {
    const { isRecursive } = this.#look.options;
    if (key !== '' && errnoOf(error) === 'ENAMETOOLONG') this.#nodes.leaveOut(key);
    else if (errnoOf(error) === undefined || isExhausted(error) || key === '' || !isRecursive) throw error;
    else this.#nodes.setUnreadable(key, readingError(path, error));
  }
}
