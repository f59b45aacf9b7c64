/**
 * One look at a directory or a tree, in steps.
 *
 * | an entry that is visited | then                                                                                     |
 * |--------------------------|------------------------------------------------------------------------------------------|
 * | a file                   | is read, unless it is known (file.ts)                                                    |
 * | a directory              | is listed if it has changed; in a plain directory it is ignored                          |
 * | a volume                 | is read as a whole (volume.ts), and shows only its keys                                  |
 * | a link to a file         | counts as a file; the entries that the link leads through are listened to                |
 * | a link to a directory    | is entered with `followLinks`. Each directory has one key: its own path in the tree, or  |
 * |                          | the first by name among those through links                                              |
 * | unreadable               | a directory, volume or link keeps its known entries; a file of a tree is compared by     |
 * |                          | inode and times; a file of a plain directory makes the whole directory unreadable        |
 * | gone                     | is removed, with everything below it                                                     |
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import { within } from '../absolute-path.js';
import type { Disk } from '../disk.js';
import { identityOf, inodeOf, isTelling, isUnchanged } from '../file-identity.js';
import { MAX_ATTEMPTS, VERIFIED_AT_ONCE } from '../observation.js';
import { joinLinks, resolve, type Route } from '../resolve.js';
import { FileSnapshot } from '../snapshot.js';
import { readingError } from '../target-error.js';
import { childOf, nameOf, parentOf } from '../tree-key.js';
import { isUserVisible } from '../volume-layout.js';
import { fileAt, unreadFile, type FilePlace, type FileWanted } from './file.js';
import type { TreeDirectory, TreeLookOptions, TreeNodes } from './tree-nodes.js';
import { isDataLink, isVolumeInGap, looksLikeVolume } from '../volume-entries.js';
import { TreeVolumes } from './tree-volumes.js';
import { VolumeFiles } from './volume.js';

/** How many entries are visited in one step. */
const VISITS_IN_STEP = 100;

/** A directory to be listed. */
interface Unlisted {
  readonly key: string;
  readonly path: string;
  readonly isLinked: boolean;
}

/** The results of a step, kept when the step completes. */
type Finding = () => void;

const NOTHING: Finding = () => undefined;

/** The keys that a look still has to visit. */
export class TreeLook {
  readonly #look: TreeLookOptions;
  readonly #nodes: TreeNodes;
  readonly #visits = new Set<string>();
  /** Directories that are listed even if they have not changed. */
  readonly #relisted = new Set<string>();
  /** Directories that this look has listed, each once unless it changes meanwhile. */
  readonly #listed = new Set<string>();
  /** Links are followed last, because a directory with its own path in the tree is not entered through a link. */
  readonly #links = new Set<string>();
  readonly #unlisted: Unlisted[] = [];
  readonly #volumes: TreeVolumes;
  readonly #entryTimes = new Map<string, bigint>();
  #attempts = 0;
  /** The directories that were skipped when the look was last complete. */
  #skipped = '';

  constructor(look: TreeLookOptions) {
    this.#look = look;
    this.#nodes = look.nodes;
    this.#volumes = new TreeVolumes(look);
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

  /** Takes the next step. Returns `read` after the last one. */
  next(disk: Disk): 'read' | 'gap' | 'moved' | undefined {
    if (this.#visits.size > 0) {
      this.#keep(this.#visits, (key) => this.#visit(key, disk));
      return;
    }
    const unlisted = this.#unlisted.at(-1);
    if (unlisted) {
      const found = this.#list(unlisted, disk);
      if (typeof found === 'string') return found;
      this.#unlisted.pop();
      found();
      return undefined;
    }
    if (!this.#volumes.areRead) {
      const directory = this.#volumes.next(disk);
      if (directory) this.#unlisted.push(directory);
      return;
    }
    if (this.#links.size > 0) {
      this.#keep(this.#links, (key) => this.#follow(key, disk), byName);
      return;
    }
    return this.#areAllVisited() ? 'read' : undefined;
  }

  /** Visits some of these keys, and keeps the results. */
  #keep(
    keys: Set<string>,
    visit: (key: string) => Finding,
    order?: (one: string, other: string) => number,
  ): undefined {
    const all = order ? [...keys].sort(order) : keys;
    const batch: string[] = [];
    for (const key of all) if (batch.push(key) === VISITS_IN_STEP) break;
    const found = batch.map((key) => ({ key, finding: visit(key) }));
    for (const key of batch) keys.delete(key);
    // One of them may remove the directory of another.
    for (const { key, finding } of found) if (key === '' || this.#parentOf(key)) finding();
  }

  /** Whether the results require no further visit. */
  #areAllVisited(): boolean {
    const { kept, allowed, files, haveDirectoriesChanged } = this.#nodes;
    if (kept !== allowed) {
      this.#nodes.kept = allowed;
      for (const key of files.keys()) this.visit(key);
      return files.size === 0;
    }
    // The other key of a skipped directory may be gone.
    const skipped = [...this.#nodes.skipped].sort();
    if (!haveDirectoriesChanged || skipped.join('\0') === this.#skipped || this.#isLastAttempt()) return true;
    this.#skipped = skipped.join('\0');
    for (const key of skipped) this.visit(key);
    return false;
  }

  #visit(key: string, disk: Disk): Finding {
    const parent = this.#parentOf(key);
    if (key !== '' && !parent) return NOTHING;
    if (key !== '' && this.#look.scope.leavesOut(key)) return () => this.#nodes.remove(key);
    // The files of a volume are those of its revision.
    if (key !== '' && parent?.volume) return () => this.#volumes.add(parent.key);
    const path = key === '' ? this.#look.root.path : within(parent?.path ?? '', nameOf(key));
    let stat: BigIntStats | undefined;
    try {
      stat = disk.lstat(path);
    } catch (error) {
      return this.#unreadable(key, path, error);
    }
    if (!stat) return () => this.#nodes.remove(key);
    if (stat.isSymbolicLink()) return () => void this.#links.add(key);
    if (stat.isDirectory()) return this.#directory(key, path, stat, parent?.isLinked === true);
    if (!stat.isFile() || !this.#look.scope.includes(key)) return () => this.#nodes.remove(key);
    const { links, turnedNs } = this.#look.root.route;
    const place = { path: within(this.#look.options.path, key), realPath: path, links, turnedNs };
    return this.#file(
      key,
      { ...place, revision: undefined, entryNs: this.#entryNs(parent, disk) },
      stat,
      disk,
    );
  }

  /** When an entry of a directory was last added, removed or renamed, ns. */
  #entryNs(parent: TreeDirectory | undefined, disk: Disk): bigint {
    if (!parent) return 0n;
    let entryNs = this.#entryTimes.get(parent.key);
    if (entryNs === undefined)
      this.#entryTimes.set(parent.key, (entryNs = disk.lstat(parent.path)?.mtimeNs ?? 0n));
    return entryNs;
  }

  #file(key: string, place: FilePlace, stat: BigIntStats, disk: Disk): Finding {
    const known = this.#nodes.files.get(key);
    const { maxContentBytes, isRecursive } = this.#look.options;
    const wanted: FileWanted = { kept: this.#nodes.kept, maxContentBytes, now: this.#look.now };
    let file: FileSnapshot | undefined;
    try {
      file = fileAt(place, stat, known, wanted, disk);
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error) || !isRecursive) throw error;
      if (hasMoved(error) && !this.#isLastAttempt()) return () => this.visit(key);
      const isSame = known && isUnchanged(stat, FileSnapshot.stampOf(known).inode);
      file = isSame ? known : unreadFile(place, stat, wanted);
    }
    const seen = file;
    // It was replaced after it was found.
    if (!seen) return this.#isLastAttempt() ? () => this.#nodes.remove(key) : () => this.visit(key);
    return () => {
      this.#nodes.removeDirectory(key);
      if (place.links === this.#look.root.route.links) this.#nodes.removeLink(key);
      this.#nodes.setFile(key, seen);
      this.#name(key);
    };
  }

  #directory(key: string, path: string, stat: BigIntStats, isLinked: boolean): Finding {
    if (!this.#look.options.isRecursive && key !== '') return () => this.#nodes.remove(key);
    const known = this.#nodes.directories.get(key);
    const isSame = known?.identity === identityOf(stat) && known.path === path;
    const isListed = this.#listed.has(key);
    const isAsListed = isSame && (isListed || known.isTelling) && isUnchanged(stat, known.inode);
    const isAsked = !isListed && (this.#look.extent === 'all' || this.#relisted.has(key));
    const isToList = isAsked || !isAsListed || this.#nodes.unreadable.has(key);
    const isVolume = known?.volume !== undefined;
    return () => {
      if (!isSame) this.#nodes.remove(key);
      if (isToList) this.#unlisted.push({ key, path, isLinked });
      else if (isVolume) this.#volumes.add(key);
      this.#name(key);
    };
  }

  /** Remembers that the parent directory has this entry. */
  #name(key: string): void {
    if (key !== '') this.#parentOf(key)?.names.add(nameOf(key));
  }

  #list({ key, path, isLinked }: Unlisted, disk: Disk): Finding | 'gap' | 'moved' {
    let stat: BigIntStats | undefined;
    let entries: readonly Dirent[] | undefined;
    let other: TreeDirectory | undefined;
    const parent = this.#parentOf(key);
    // Since it was found, the directory above it was removed, or became a volume, which shows only its keys.
    if (key !== '' && (!parent || parent.volume)) return NOTHING;
    try {
      stat = disk.lstat(path);
      other = stat && this.#nodes.otherThan(key, identityOf(stat));
      if (isLinked && other && !(other.isLinked && key < other.key)) return () => this.#nodes.skip(key);
      entries = stat?.isDirectory() ? disk.list(path) : undefined;
    } catch (error) {
      return this.#unreadable(key, path, error);
    }
    if (!stat || !entries) return key === '' ? 'moved' : () => this.#nodes.removeDirectory(key);
    const known = this.#nodes.directories.get(key);
    const isVolume = this.#look.options.isRecursive && entries.some(isDataLink);
    if (!this.#look.options.isRecursive && looksLikeVolume(path, entries, disk)) return 'gap';
    const visible = entries.filter(({ name }) => isUserVisible(name));
    const isHiding =
      visible.length < entries.length &&
      (!this.#look.options.isRecursive || isVolume || isVolumeInGap(entries) || known?.isHiding === true);
    const shown = isHiding ? visible : entries;
    const volume = isVolume
      ? (known?.volume ?? new VolumeFiles(within(this.#look.options.path, key), this.#look.options))
      : undefined;
    const identity = identityOf(stat);
    const [inode, isTold] = [inodeOf(stat), isTelling(stat, this.#look.now)];
    return () => {
      const names = volume ? (known?.names ?? []) : shown.map(({ name }) => name);
      const kept = new Set(names);
      if (other?.isLinked) this.#nodes.skip(other.key);
      if (!volume !== !known?.volume) this.#nodes.removeDirectory(key);
      else for (const name of known?.names ?? []) if (!kept.has(name)) this.#nodes.remove(childOf(key, name));
      this.#nodes.setReadable(key);
      this.#listed.add(key);
      this.#nodes.setDirectory({
        key,
        path,
        identity,
        inode,
        isTelling: isTold,
        isLinked,
        names: kept,
        isHiding,
        volume,
      });
      if (isVolume) this.#volumes.add(key);
      else this.#visitListed(key, shown);
    };
  }

  /** In a large directory, files with known names are visited only for hints, and in turn by resyncs. */
  #visitListed(key: string, entries: readonly Dirent[]): void {
    const isLarge = this.#look.extent !== 'all' && entries.length > VERIFIED_AT_ONCE;
    for (const entry of entries) {
      const child = childOf(key, entry.name);
      if (!isLarge || !entry.isFile() || !this.#nodes.files.has(child)) this.visit(child);
    }
  }

  #follow(key: string, disk: Disk): Finding {
    const parent = this.#parentOf(key);
    if (!parent || parent.volume) return NOTHING;
    const link = resolve(within(parent.path, nameOf(key)), disk);
    const { route } = link;
    const { links, turnedNs } = together(this.#look.root.route, route);
    let finding: Finding | undefined;
    if (link.kind === 'found' && link.stat.isFile() && this.#look.scope.includes(key)) {
      const path = within(this.#look.options.path, key);
      const { revision } = route;
      const place = { path, realPath: link.path, revision, links, turnedNs, entryNs: link.entryNs };
      finding = this.#file(key, place, link.stat, disk);
    } else if (link.kind === 'found' && link.stat.isDirectory() && this.#look.options.followLinks) {
      finding = this.#directory(key, link.path, link.stat, true);
    } else if (link.kind === 'unreadable' && link.error.cause !== undefined) {
      finding = this.#unreadable(key, link.error.path, link.error.cause);
    }
    return () => {
      if (finding) finding();
      else this.#nodes.remove(key);
      this.#nodes.setLink(key, route.directories);
      this.#name(key);
    };
  }

  #parentOf(key: string): TreeDirectory | undefined {
    return this.#nodes.directories.get(parentOf(key));
  }

  /** An entry that cannot be looked up, or a directory that cannot be listed. */
  #unreadable(key: string, path: string, error: unknown): Finding {
    if (errnoOf(error) === undefined || isExhausted(error) || key === '' || !this.#look.options.isRecursive)
      throw error;
    return () => {
      this.#nodes.setUnreadable(key, readingError(path, error));
      this.#name(key);
    };
  }

  #isLastAttempt(): boolean {
    this.#attempts += 1;
    return this.#attempts > MAX_ATTEMPTS;
  }
}

/** The links that lead to the root, and those that follow. */
function together(root: Route, { links, turnedNs }: Route): Pick<Route, 'links' | 'turnedNs'> {
  return {
    links: joinLinks(root.links, links),
    turnedNs: turnedNs > root.turnedNs ? turnedNs : root.turnedNs,
  };
}

function byName(one: string, other: string): number {
  return one < other ? -1 : 1;
}
