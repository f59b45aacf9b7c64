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
import type { BigIntStats, Dirent } from 'node:fs';

import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import { nextSlice, type Steps } from '../../core/steps.js';
import { within } from '../absolute-path.js';
import { MAX_ATTEMPTS, MOVED, type Moved } from '../attempts.js';
import type { Disk } from '../disk.js';
import { identityOf, inodeOf, timestampsAreReliable, isUnchanged } from '../file-identity.js';
import { VERIFIED_AT_ONCE } from '../observation.js';
import { isInRevision, joinWays, resolve, wereRetargeted, type Way } from '../resolve.js';
import { FileSnapshot } from '../snapshot.js';
import { readingError } from '../target-error.js';
import { childOf, nameOf, parentOf } from '../tree-key.js';
import { isDataLink, isVolumeInGap, looksLikeVolume } from '../volume-entries.js';
import { DATA_LINK, isUserVisible } from '../volume-layout.js';
import { fileAt, unreadFile, type FilePlace, type FileWanted } from './file.js';
import type { TreeDirectory, TreeLookOptions, TreeNodes } from './tree-nodes.js';
import { publishedIn, VolumeFiles, type ReachedDirectory, type VolumeReading } from './volume.js';

export type TreeLookResult =
  | 'read'
  /** The root is a volume that currently has no revision. */
  | 'gap'
  /** Something was replaced during every attempt. */
  | 'unstable'
  /** The root was replaced. */
  | Moved;

/** A directory, and whether it was reached through a link. */
interface Visited extends ReachedDirectory {
  readonly key: string;
  readonly isLinked: boolean;
}

/** The keys that a look still has to visit. */
export class TreeLook {
  readonly #look: TreeLookOptions;
  readonly #nodes: TreeNodes;
  readonly #visits = new Set<string>();
  /** Directories that are listed even if they have not changed. */
  readonly #relisted = new Set<string>();
  /** Directories in which all files are visited, even if there are many. */
  readonly #verified = new Set<string>();
  /** Directories that this attempt has listed, each once unless it changes meanwhile. */
  readonly #listed = new Set<string>();
  /** Links are followed last, because a directory with its own path in the tree is not entered through a link. */
  readonly #links = new Set<string>();
  readonly #unlisted: Visited[] = [];
  readonly #volumes: Visited[] = [];
  readonly #entryTimes = new Map<string, bigint>();
  /** The links through which keys were found, see `Way`. */
  readonly #ways = new Map<string, string>();
  /** What was not there, by the keys of the links that lead there. */
  readonly #absent = new Map<string, string>();
  /** What was replaced while it was read. */
  readonly #moved = new Set<string>();
  /** Volumes whose swap this attempt has noticed. */
  readonly #swapped = new Set<string>();
  #isLastAttempt = false;

  constructor(look: TreeLookOptions) {
    this.#look = look;
    this.#nodes = look.nodes;
  }

  /** Visits the entry with this key. */
  visit(key: string): void {
    this.#visits.add(key);
  }

  /** Lists the directory with this key, or reads it if it is a volume. */
  relist(key: string): void {
    this.#relisted.add(key);
    this.visit(key);
  }

  /** Visits the directory with this key and all of its files. */
  visitAll(key: string): void {
    this.#verified.add(key);
    this.relist(key);
  }

  *run(shared: Disk): Steps<TreeLookResult> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      this.#isLastAttempt = attempt === MAX_ATTEMPTS;
      const disk = attempt === 1 ? shared : shared.afresh;
      for (let round = 0, skipped = ''; round < MAX_ATTEMPTS; round += 1) {
        const end = yield* this.#visitAll(disk);
        if (end) return end;
        skipped = this.#visitSkipped(skipped);
        if (this.#visits.size === 0) break;
      }
      const proof = disk.afresh;
      if (yield* wereRetargeted(this.#look.root.way.links, proof)) return MOVED;
      yield* this.#prove(proof);
      if (this.#moved.size === 0) return 'read';
      for (const key of this.#moved) {
        this.relist(key);
        // It may be no link any more.
        this.#ways.delete(key);
        this.#absent.delete(key);
      }
      // Nothing else of this attempt counts in the next one.
      for (const known of [this.#moved, this.#listed, this.#swapped, this.#entryTimes]) known.clear();
    }
    return 'unstable';
  }

  *#visitAll(disk: Disk): Steps<'gap' | Moved | undefined> {
    for (;;) {
      yield* nextSlice();
      for (const key of this.#visits) {
        this.#visits.delete(key);
        if ((yield* this.#visit(key, disk)) === MOVED) return MOVED;
        yield* nextSlice();
      }
      const unlisted = this.#unlisted.pop();
      const volume = unlisted ? undefined : this.#volumes.pop();
      if (unlisted) {
        const end = yield* this.#list(unlisted, disk);
        if (end) return end;
      } else if (volume) yield* this.#readVolume(volume, disk);
      else if (this.#links.size === 0) return undefined;
      else yield* this.#followLinks(disk);
    }
  }

  /** Visits what is to be visited because of the results. @param before what was skipped at the last call. */
  #visitSkipped(before: string): string {
    const { kept, allowed, files, haveDirectoriesChanged } = this.#nodes;
    if (kept !== allowed) {
      this.#nodes.kept = allowed;
      for (const key of files.keys()) this.visit(key);
    }
    // The other key of a skipped directory may be gone.
    const skipped = [...this.#nodes.skipped].sort();
    const all = skipped.join('\0');
    if (haveDirectoriesChanged && all !== before) for (const key of skipped) this.visit(key);
    return all;
  }

  /** Whether the links that were followed still lead where they led, or nowhere: then what lies in a volume is of one instant. */
  *#prove(disk: Disk): Steps<void> {
    const retargeted = new Map<string, boolean>();
    for (const [key, links] of this.#ways) {
      let isRetargeted = retargeted.get(links);
      if (isRetargeted === undefined) {
        yield* nextSlice();
        retargeted.set(links, (isRetargeted = yield* wereRetargeted(links, disk)));
      }
      if (isRetargeted) this.#moved.add(key);
    }
    for (const [key, path] of this.#absent) if (yield* disk.lstat(path)) this.#moved.add(key);
  }

  *#visit(key: string, disk: Disk): Steps<Moved | undefined> {
    const { root, scope, options } = this.#look;
    const parent = key === '' ? undefined : this.#parentOf(key);
    if (key !== '' && !parent) return;
    // The files of a volume are those of its revision.
    if (parent?.volume) {
      this.visit(parent.key);
      return;
    }
    if (key !== '' && scope.leavesOut(key)) {
      this.#nodes.remove(key);
      return;
    }
    const path = parent ? within(parent.path, nameOf(key)) : root.path;
    const way = parent?.way ?? root.way;
    let stat: BigIntStats | undefined;
    try {
      stat = yield* disk.lstat(path);
    } catch (error) {
      this.#unreadable(key, path, error);
      return;
    }
    if (key === '' && !stat?.isDirectory()) return MOVED;
    if (stat?.isSymbolicLink()) {
      this.#links.add(key);
      return;
    }
    this.#nodes.removeLink(key);
    if (stat?.isDirectory()) {
      const isLinked = parent?.isLinked === true;
      this.#directory({ key, path, stat, way, isLinked, directories: [] });
    } else if (stat?.isFile() && scope.includes(key)) {
      const entryNs = yield* this.#entryNs(parent, disk);
      yield* this.#file(key, { path: within(options.path, key), realPath: path, way, entryNs }, stat, disk);
    } else this.#nodes.remove(key);
  }

  /** When an entry of a directory was last added, removed or renamed, ns. */
  *#entryNs(parent: TreeDirectory | undefined, disk: Disk): Steps<bigint> {
    if (!parent) return 0n;
    let entryNs = this.#entryTimes.get(parent.key);
    if (entryNs === undefined) {
      entryNs = (yield* disk.lstat(parent.path))?.mtimeNs ?? 0n;
      this.#entryTimes.set(parent.key, entryNs);
    }
    return entryNs;
  }

  *#file(key: string, place: FilePlace, stat: BigIntStats, disk: Disk): Steps<void> {
    const known = this.#nodes.files.get(key);
    const { maxContentBytes, isRecursive } = this.#look.options;
    const wanted: FileWanted = { kept: this.#nodes.kept, maxContentBytes, now: this.#look.now };
    let file: FileSnapshot | undefined;
    try {
      file = yield* fileAt(place, stat, known, wanted, disk);
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error) || !isRecursive) throw error;
      if (!hasMoved(error) || this.#isLastAttempt) {
        const isSame = known && isUnchanged(stat, FileSnapshot.stampOf(known).inode);
        file = isSame ? known : unreadFile(place, stat, wanted, true);
      }
    }
    // It was replaced after it was found.
    if (!file) {
      this.#moved.add(key);
      return;
    }
    this.#nodes.removeDirectory(key);
    this.#nodes.setFile(key, file);
    this.#name(key);
  }

  #directory(visited: Visited): void {
    const { key, path, stat, way } = visited;
    if (!this.#look.options.isRecursive && key !== '') {
      this.#nodes.remove(key);
      return;
    }
    const known = this.#nodes.directories.get(key);
    const isSame =
      known?.identity === identityOf(stat) && known.path === path && known.way.links === way.links;
    if (isInRevision(way, path)) {
      this.#nodes.removeFile(key);
      if (this.#isAlias(visited)) return;
      const volume = known?.volume ?? this.#newVolume(key);
      this.#setDirectory(visited, { names: known?.names ?? new Set(), isHiding: true, volume });
      this.#volumes.push(visited);
    } else {
      const isListed = this.#listed.has(key);
      const isAsListed =
        isSame && (isListed || known.timestampsAreReliable) && isUnchanged(stat, known.inode);
      const isAsked = !isListed && (this.#look.extent === 'all' || this.#relisted.has(key));
      if (!isSame) this.#nodes.remove(key);
      if (isAsked || !isAsListed || this.#nodes.unreadable.has(key)) this.#unlisted.push(visited);
      else if (known.volume) this.#volumes.push(visited);
    }
    this.#name(key);
  }

  /** Remembers that the parent directory has this entry. */
  #name(key: string): void {
    if (key !== '') this.#parentOf(key)?.names.add(nameOf(key));
  }

  *#list(visited: Visited, disk: Disk): Steps<'gap' | Moved | undefined> {
    const { key, path } = visited;
    const { isRecursive } = this.#look.options;
    let stat: BigIntStats | undefined;
    let entries: readonly Dirent[] | undefined;
    const parent = this.#parentOf(key);
    // Since it was found, the directory above it was removed, or became a volume, which shows only its keys.
    if (key !== '' && (!parent || parent.volume)) return;
    try {
      stat = yield* disk.lstat(path);
      if (stat && this.#isAlias({ ...visited, stat })) return;
      entries = stat?.isDirectory() ? yield* disk.list(path) : undefined;
    } catch (error) {
      this.#unreadable(key, path, error);
      return;
    }
    if (!stat || !entries) {
      if (key === '') return MOVED;
      this.#nodes.removeDirectory(key);
      return;
    }
    const known = this.#nodes.directories.get(key);
    const isVolume = isRecursive && entries.some(isDataLink);
    if (!isRecursive && (yield* looksLikeVolume(path, entries, disk))) return 'gap';
    const visible = entries.filter(({ name }) => isUserVisible(name));
    const isGap = isRecursive && isVolumeInGap(entries);
    const isHiding =
      visible.length < entries.length && (!isRecursive || isVolume || isGap || known?.isHiding === true);
    const shown = isHiding ? visible : entries;
    const volume = isVolume ? (known?.volume ?? this.#newVolume(key)) : undefined;
    const names = new Set(volume ? known?.names : shown.map(({ name }) => name));
    if (known?.volume && !volume) this.#visitLinksInto(path);
    if (!volume !== !known?.volume) this.#nodes.removeDirectory(key);
    else for (const name of known?.names ?? []) if (!names.has(name)) this.#nodes.remove(childOf(key, name));
    this.#nodes.setReadable(key);
    this.#listed.add(key);
    this.#setDirectory({ ...visited, stat }, { names, isHiding, volume });
    if (isVolume) this.#volumes.push({ ...visited, stat });
    else this.#visitListed(key, shown);
    return;
  }

  #newVolume(key: string): VolumeFiles {
    return new VolumeFiles(within(this.#look.options.path, key), this.#look.options);
  }

  #setDirectory(
    { key, path, way, stat, isLinked }: Visited,
    rest: Pick<TreeDirectory, 'names' | 'isHiding' | 'volume'>,
  ): void {
    const isTold = timestampsAreReliable(stat, this.#look.now);
    const [identity, inode] = [identityOf(stat), inodeOf(stat)];
    this.#nodes.setDirectory({
      key,
      path,
      way,
      identity,
      inode,
      timestampsAreReliable: isTold,
      isLinked,
      ...rest,
    });
  }

  /** Whether a directory that was reached through a link is shown under another key. */
  #isAlias({ key, stat, isLinked }: Visited): boolean {
    const other = this.#nodes.aliasOf(key, identityOf(stat));
    if (isLinked && other && !(other.isLinked && key < other.key)) {
      this.#nodes.skip(key);
      return true;
    }
    if (other?.isLinked) this.#nodes.skip(other.key);
    return false;
  }

  /** In a large directory, files with known names are visited only for hints, and in turn by resyncs. */
  #visitListed(key: string, entries: readonly Dirent[]): void {
    const isPartial =
      this.#look.extent !== 'all' && entries.length > VERIFIED_AT_ONCE && !this.#verified.has(key);
    for (const entry of entries) {
      const child = childOf(key, entry.name);
      if (!isPartial || !entry.isFile() || !this.#nodes.files.has(child)) this.visit(child);
    }
  }

  *#readVolume(visited: Visited, disk: Disk): Steps<void> {
    const { key, path } = visited;
    const directory = this.#nodes.directories.get(key);
    if (!directory?.volume) return;
    try {
      const published = yield* publishedIn(visited, disk);
      if (published === MOVED) {
        this.#moved.add(key);
        return;
      }
      if (published?.kind === 'unreadable') {
        this.#nodes.setUnreadable(key, published.error);
        return;
      }
      this.#nodes.setReadable(key);
      if (published?.kind === 'missing') {
        if (directory.names.size > 0) this.#visitLinksInto(path);
        this.#setKeys(directory, new Set());
        return;
      }
      const { extent, now } = this.#look;
      const reading = published ? yield* directory.volume.look(published, extent, now, disk) : MOVED;
      if (reading === MOVED) this.#moved.add(key);
      else this.#setVolume(directory, reading);
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error)) throw error;
      if (hasMoved(error) && !this.#isLastAttempt) this.#moved.add(key);
      else {
        const at = (error as NodeJS.ErrnoException).path ?? path;
        this.#nodes.setUnreadable(key, readingError(at, error));
      }
    }
  }

  #setVolume(directory: TreeDirectory, { files, revision, through }: VolumeReading): void {
    const { key } = directory;
    const { scope } = this.#look;
    const names = new Set<string>();
    for (const [name, file] of files) {
      const child = childOf(key, name);
      if (!scope.includes(child) || scope.ignores(child, key)) continue;
      this.#notice(child, revision.way);
      this.#nodes.setFile(child, file);
      names.add(name);
    }
    if (through.length > 0) {
      // A name that no key has.
      this.#nodes.setLink(childOf(key, DATA_LINK), through);
      names.add(DATA_LINK);
    }
    this.#setKeys(directory, names);
    this.#ways.set(key, revision.way.links);
  }

  /** From now on, a volume has these keys. */
  #setKeys({ key, names: before }: TreeDirectory, names: ReadonlySet<string>): void {
    for (const name of before) if (!names.has(name)) this.#nodes.remove(childOf(key, name));
    before.clear();
    for (const name of names) before.add(name);
  }

  *#followLinks(disk: Disk): Steps<void> {
    const keys = [...this.#links].sort();
    this.#links.clear();
    for (const key of keys) {
      yield* this.#follow(key, disk);
      yield* nextSlice();
    }
  }

  *#follow(key: string, disk: Disk): Steps<void> {
    const { options, scope } = this.#look;
    const parent = this.#parentOf(key);
    if (!parent || parent.volume) return;
    const link = yield* resolve(within(parent.path, nameOf(key)), disk);
    const { route } = link;
    const { directories } = route;
    const way = joinWays(parent.way, route);
    this.#notice(key, way);
    if (link.kind === 'found' && link.stat.isFile() && scope.includes(key)) {
      const { path: realPath, stat, entryNs } = link;
      yield* this.#file(key, { path: within(options.path, key), realPath, way, entryNs }, stat, disk);
    } else if (link.kind === 'found' && link.stat.isDirectory() && options.followLinks) {
      this.#directory({ key, path: link.path, stat: link.stat, way, directories, isLinked: true });
    } else if (link.kind === 'unreadable' && link.error.cause !== undefined) {
      this.#unreadable(key, link.error.path, link.error.cause);
    } else this.#nodes.remove(key);
    this.#nodes.setLink(key, directories);
    this.#nodes.setUnlinked(key, link.kind === 'missing' ? link.unlinkedIn : undefined);
    this.#ways.set(key, way.links);
    if (link.kind === 'missing') this.#absent.set(key, link.path);
    else this.#absent.delete(key);
    this.#name(key);
  }

  /** If a file is new or comes from another revision, everything else in its volume is visited, too. */
  #notice(key: string, { volume, revision }: Way): void {
    const known = this.#nodes.files.get(key);
    if (volume === undefined || known?.revision === revision || this.#swapped.has(volume)) return;
    this.#swapped.add(volume);
    const directory = this.#nodes.directoryAt(volume);
    // One that was no volume when it was listed is listed again, in another attempt.
    if (directory?.volume) this.visit(directory.key);
    else if (directory) this.#moved.add(directory.key);
    // Also those that led nowhere before the volume was published.
    this.#visitLinksInto(volume);
  }

  #visitLinksInto(volume: string): void {
    for (const link of this.#nodes.linksThrough(new Set([volume]))) this.visit(link);
  }

  #parentOf(key: string): TreeDirectory | undefined {
    return this.#nodes.directories.get(parentOf(key));
  }

  /** An entry that cannot be looked up, or a directory that cannot be listed. */
  #unreadable(key: string, path: string, error: unknown): void {
    if (errnoOf(error) === undefined || isExhausted(error) || key === '' || !this.#look.options.isRecursive)
      throw error;
    this.#nodes.setUnreadable(key, readingError(path, error));
    this.#name(key);
  }
}
