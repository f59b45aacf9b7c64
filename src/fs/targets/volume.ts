/**
 * A volume: the files of the revision that its `..data` link leads to, all from one instant.
 *
 * | the directory contains                    | it is                                                              |
 * |-------------------------------------------|--------------------------------------------------------------------|
 * | a link `..data` to another entry          | a volume                                                           |
 * | a link `..data` that leads nowhere, or to | missing: it is being swapped                                       |
 * | a file                                    |                                                                    |
 * | a link `..data` that leads out of it, or  | unreadable: kubelet never does that, and nothing behind it is read |
 * | to another link                           |                                                                    |
 * | no such link                              | another directory                                                  |
 *
 * Nobody writes into a revision after it has been published, so it is read once. After that, each look verifies its
 * directories and some of its files.
 */
import type { BigIntStats, Dirent } from 'node:fs';

import type { WatchedDirectory } from '../../core/watch-backend.js';
import { within } from '../absolute-path.js';
import type { Disk } from '../disk.js';
import { identityOf, inodeOf, isUnchanged, type Inode } from '../file-identity.js';
import type { Look } from '../look.js';
import {
  MOVED,
  VERIFIED_AT_ONCE,
  type Consulted,
  type LookScope,
  type Moved,
  type Observation,
} from '../observation.js';
import { ReadTotals, type ReadLimits } from '../read-limits.js';
import { areTurned, isEntryName, joinLinks, resolve, type Route } from '../resolve.js';
import { Rotation } from '../rotation.js';
import { FileSnapshot } from '../snapshot.js';
import { targetError } from '../target-error.js';
import { DATA_LINK, isUserVisible } from '../volume-layout.js';
import { fileAt, type FilePlace } from './file.js';

/** How many files are read in one step. */
const FILES_IN_STEP = 100;

/** A published revision. */
export interface Revision {
  readonly kind: 'revision';
  /** The directory, every link resolved. */
  readonly path: string;
  /** The name of the revision: the target of `..data`. */
  readonly name: string;
  /** See `Route`. */
  readonly links: string;
  /** When `..data` was retargeted, ns. */
  readonly turnedNs: bigint;
  readonly consulted: Consulted;
}

/** The target of `..data`. */
export type Published = Revision | Extract<Observation, { kind: 'missing' | 'unreadable' }>;

/**
 * Finds what is published in a directory; undefined if the directory is not a volume.
 * @param route how the directory was reached.
 */
export function publishedIn(
  directory: string,
  stat: BigIntStats,
  route: Route,
  disk: Disk,
): Published | undefined {
  const link = within(directory, DATA_LINK);
  const turned = disk.lstat(link);
  if (!turned?.isSymbolicLink()) return undefined;
  const target = disk.readlink(link);
  const consulted = {
    get directories() {
      const isListenedTo = target !== undefined && isEntryName(target) && isUserVisible(target);
      const entries = isListenedTo ? [DATA_LINK, target] : [DATA_LINK];
      return [...route.directories, { path: directory, identity: identityOf(stat), entries }];
    },
  };
  const gap = { kind: 'missing', isGap: true, changedNs: stat.mtimeNs, consulted } as const;
  if (target === undefined) return gap;
  const strange = { kind: 'unreadable', error: targetError('ERR_TARGET_LAYOUT', link), consulted } as const;
  if (!isEntryName(target)) return strange;
  const path = within(directory, target);
  const found = disk.lstat(path);
  // The link may lead anywhere.
  if (found?.isSymbolicLink()) return strange;
  if (!found?.isDirectory()) return gap;
  const links = joinLinks(route.links, `${link}\0${target}`);
  return { kind: 'revision', path, name: target, links, turnedNs: turned.ctimeNs, consulted };
}

/** The files of a revision. The same object until something changes. */
export interface VolumeReading {
  readonly kind: 'read';
  readonly revision: Revision;
  /** By key, in order. */
  readonly files: ReadonlyMap<string, FileSnapshot>;
  /** The limit that kept contents from being read, in words. */
  readonly limited: string | undefined;
  readonly consulted: Consulted;
  /** The directories of the revision as they were listed, by path. */
  readonly listed: ReadonlyMap<string, Inode>;
}

/** Remembers the files of one volume. */
export class VolumeFiles {
  readonly #path: string;
  readonly #limits: ReadLimits;
  readonly #rotation = new Rotation<FileSnapshot>();
  #last: VolumeReading | undefined;
  /** Whether something writes into the known revision, so that every look verifies all of it. */
  #isWritten = false;

  /** @param path the watched path. */
  constructor(path: string, limits: ReadLimits) {
    this.#path = path;
    this.#limits = limits;
  }

  /** Verifies the known revision, or reads a new one. */
  look(revision: Revision, scope: LookScope, now: number): Look<VolumeReading | Moved> {
    const last = this.#last;
    const isKnown = last?.revision.path === revision.path && last.revision.links === revision.links;
    let unverified = isKnown ? this.#unverified(last, scope) : undefined;
    const draft = new RevisionDraft(this.#path, revision, this.#limits, now, last?.files, isKnown);
    return {
      next: (disk) => {
        if (!last || !unverified) {
          const found = draft.next(disk);
          return found?.kind === 'read' ? this.#keep(found, isKnown ? last : undefined) : found;
        }
        const rest = unverified.slice(FILES_IN_STEP);
        unverified = isAsRead(last, unverified.slice(0, FILES_IN_STEP), disk) ? rest : undefined;
        return unverified?.length === 0 ? last : undefined;
      },
    };
  }

  /** @param known what was read of the same revision before. */
  #keep(found: VolumeReading, known: VolumeReading | undefined): VolumeReading {
    const isSame = known !== undefined && haveSameFiles(known, found);
    this.#isWritten = known !== undefined && (this.#isWritten || !isSame);
    this.#last = isSame ? { ...found, files: known.files } : found;
    return this.#last;
  }

  /** The files of the known revision that a look verifies. */
  #unverified({ files }: VolumeReading, scope: LookScope): FileSnapshot[] {
    if (scope === 'all' || this.#isWritten) return [...files.values()];
    if (scope === 'hints') return [];
    return [...this.#rotation.next(files, VERIFIED_AT_ONCE)].map(([, file]) => file);
  }
}

/** Whether no file was changed, added or removed. */
function haveSameFiles({ files: before }: VolumeReading, { files }: VolumeReading): boolean {
  return files.size === before.size && [...files].every(([key, file]) => before.get(key) === file);
}

/** Whether the directories of a revision, and these files in it, are unchanged since they were read. */
function isAsRead({ listed }: VolumeReading, files: readonly FileSnapshot[], disk: Disk): boolean {
  for (const [path, inode] of listed) {
    const stat = disk.lstat(path);
    if (!stat || !isUnchanged(stat, inode)) return false;
  }
  return files.every((file) => {
    const stat = disk.lstat(file.realPath);
    const { inode, isTelling, isSteady } = FileSnapshot.stampOf(file);
    return isTelling && isSteady && stat !== undefined && isUnchanged(stat, inode);
  });
}

/** Reads a revision: one directory in each step, then some files in each step, and finally the proof. */
class RevisionDraft {
  readonly #path: string;
  readonly #revision: Revision;
  readonly #limits: ReadLimits;
  readonly #now: number;
  readonly #known: ReadonlyMap<string, FileSnapshot> | undefined;
  /** Whether the known files come from the same revision, so that most of them are unchanged. */
  readonly #isKnown: boolean;
  /** The directories that are still to be listed, as prefixes of keys. */
  readonly #unlisted = [''];
  readonly #listed = new Map<string, Inode>();
  readonly #unread: { readonly key: string; readonly place: FilePlace }[] = [];
  readonly #totals: ReadTotals;
  #directories: WatchedDirectory[] = [];
  #files = new Map<string, FileSnapshot>();

  /** @param known the files that were read last, by key. */
  constructor(
    path: string,
    revision: Revision,
    limits: ReadLimits,
    now: number,
    known: ReadonlyMap<string, FileSnapshot> | undefined,
    isKnown: boolean,
  ) {
    this.#path = path;
    this.#revision = revision;
    this.#limits = limits;
    this.#now = now;
    this.#known = known;
    this.#isKnown = isKnown;
    this.#totals = new ReadTotals(limits);
  }

  next(disk: Disk): VolumeReading | Moved | undefined {
    const below = this.#unlisted.at(-1);
    if (below !== undefined) return this.#list(below, disk) ? undefined : MOVED;
    if (this.#files.size < this.#unread.length) return this.#read(disk) ? undefined : MOVED;
    return this.#isProven(disk.afresh) ? this.#reading() : MOVED;
  }

  /** False if the directory is gone. */
  #list(below: string, disk: Disk): boolean {
    const { path: root, links, turnedNs, name: revision } = this.#revision;
    const directory = below === '' ? root : within(root, below.slice(0, -1));
    const stat = disk.lstat(directory);
    const entries = stat?.isDirectory() ? disk.list(directory) : undefined;
    if (!stat || !entries) return false;
    const route = { revision, links, turnedNs, entryNs: stat.mtimeNs };
    const found = entries
      .filter(({ name }) => below !== '' || isUserVisible(name))
      .map((entry) => ({
        entry,
        ...this.#entryAt(`${below}${entry.name}`, within(directory, entry.name), entry, route, disk),
      }));
    this.#unlisted.pop();
    this.#listed.set(directory, inodeOf(stat));
    for (const { entry, key, place, directories = [] } of found) {
      if (entry.isDirectory()) this.#unlisted.push(`${key}/`);
      if (place) this.#unread.push({ key, place });
      this.#directories.push(...directories);
    }
    if (this.#unlisted.length === 0) this.#unread.sort(byKey);
    return true;
  }

  /** Adds a file, or the target of a link. */
  #entryAt(
    key: string,
    realPath: string,
    entry: Dirent,
    route: Omit<FilePlace, 'path' | 'realPath'>,
    disk: Disk,
  ): { key: string; place?: FilePlace; directories?: readonly WatchedDirectory[] } {
    const path = within(this.#path, key);
    if (entry.isFile()) return { key, place: { ...route, path, realPath } };
    if (!entry.isSymbolicLink()) return { key };
    const link = resolve(realPath, disk);
    const { directories } = link.route;
    if (link.kind === 'unreadable' && link.error.cause !== undefined) throw link.error.cause as Error;
    if (link.kind !== 'found' || !link.stat.isFile()) return { key, directories };
    const { entryNs } = link;
    const { turnedNs } = link.route;
    const links = joinLinks(route.links, link.route.links);
    return { key, directories, place: { ...route, path, realPath: link.path, links, turnedNs, entryNs } };
  }

  /** Reads the next files; false if one is gone. */
  #read(disk: Disk): boolean {
    const kept = this.#unread.length > this.#limits.maxFiles ? 'identities' : this.#totals.kept;
    const wanted = { kept, maxContentBytes: this.#limits.maxContentBytes, now: this.#now };
    const read: [string, FileSnapshot][] = [];
    for (const { key, place } of this.#unread.slice(this.#files.size, this.#files.size + FILES_IN_STEP)) {
      const stat = this.#isKnown ? disk.lstat(place.realPath) : undefined;
      const file = fileAt(place, stat, this.#known?.get(key), wanted, disk);
      if (!file) return false;
      read.push([key, file]);
    }
    for (const [key, file] of read) {
      this.#files.set(key, file);
      this.#totals.add(file.size);
    }
    if (this.#totals.kept === 'digests' && kept === 'contents') this.#dropContents();
    return true;
  }

  /** Handles files that together are too large. */
  #dropContents(): void {
    for (const [key, file] of this.#files) {
      if (FileSnapshot.bytesOf(file)) this.#files.set(key, file.withoutContent());
    }
  }

  /** Whether links and directory are unchanged: then all files existed at one instant. */
  #isProven(disk: Disk): boolean {
    const { links, path } = this.#revision;
    if (areTurned(links, disk)) return false;
    const stat = disk.lstat(path);
    const listed = this.#listed.get(path);
    return stat !== undefined && listed !== undefined && isUnchanged(stat, listed);
  }

  #reading(): VolumeReading {
    const { consulted } = this.#revision;
    const through = this.#directories;
    return {
      kind: 'read',
      revision: this.#revision,
      files: this.#files,
      limited: this.#totals.limited,
      // Also the directories that links in the revision lead through.
      consulted: through.length === 0 ? consulted : { directories: [...consulted.directories, ...through] },
      listed: this.#listed,
    };
  }
}

function byKey(one: { readonly key: string }, other: { readonly key: string }): number {
  return one.key < other.key ? -1 : 1;
}
