/**
 * A volume: the files of the revision that its `..data` link leads to, all from one instant.
 *
 * | the directory                             | it is                                                              |
 * |-------------------------------------------|--------------------------------------------------------------------|
 * | contains a link `..data` to another entry | a volume                                                           |
 * | is reached through such a link            | a part of a volume, and read in the same way                       |
 * | contains a link `..data` that leads       | missing: it is being swapped                                       |
 * | nowhere, or to a file                     |                                                                    |
 * | contains a link `..data` that leads out   | unreadable: kubelet never does that, and nothing behind it is read |
 * | of it, or to another link                 |                                                                    |
 * | contains no such link                     | another directory                                                  |
 *
 * Nobody writes into a revision after it has been published, so it is read once. After that, each look verifies its
 * directories, where its links lead, and some of its files.
 */
import type { BigIntStats } from 'node:fs';

import { nextSlice, slices, type Steps } from '../../core/scheduling/steps.js';
import type { WatchedDirectory } from '../../core/ports/watch-backend.js';
import { within } from '../absolute-path.js';
import { MOVED, type Moved } from '../attempts.js';
import type { Disk } from '../disk.js';
import { identityOf, inodeOf, isUnchanged, type Inode } from '../file-identity.js';
import type { Consulted, ConsultedDirectory } from '../consulted.js';
import { VERIFIED_AT_ONCE, type Extent, type Observation } from '../observation.js';
import { ReadTotals, type ReadLimits } from '../read-limits.js';
import {
  isInRevision,
  joinWays,
  resolve,
  wereRetargeted,
  withLink,
  type Resolution,
  type Way,
} from '../resolve.js';
import { Rotation } from '../rotation.js';
import { FileSnapshot } from '../snapshot.js';
import { targetError } from '../target-error.js';
import { DATA_LINK, isUserVisible } from '../volume-layout.js';
import { fileAt, type FilePlace } from './file.js';
import { LinkRoutes } from './link-routes.js';

/** A published revision, or a directory in one. */
export interface Revision {
  readonly kind: 'revision';
  /** The directory, every link resolved. */
  readonly path: string;
  /** The links that lead there. */
  readonly way: Way;
  readonly consulted: Consulted;
}

/** The target of `..data`. */
export type Published = Revision | Extract<Observation, { kind: 'missing' | 'unreadable' }>;

/** A directory, and how it was reached. */
export interface ReachedDirectory {
  /** Every link resolved. */
  readonly path: string;
  readonly stat: BigIntStats;
  readonly way: Way;
  readonly directories: readonly WatchedDirectory[];
}

/** Finds what is published in a directory; undefined if the directory is neither a volume nor in one. */
export function* publishedIn(
  { path: directory, stat, way, directories }: ReachedDirectory,
  disk: Disk,
): Steps<Published | Moved | undefined> {
  if (isInRevision(way, directory)) {
    return { kind: 'revision', path: directory, way, consulted: { directories } };
  }
  const link = within(directory, DATA_LINK);
  const linkStat = yield* disk.lstat(link);
  if (!linkStat?.isSymbolicLink()) return undefined;
  const target = yield* disk.readlink(link);
  // It was replaced, or a directory above it was renamed away.
  if (target === undefined) return MOVED;
  const wayToRevision = withLink(way, link, target, linkStat);
  const path = wayToRevision.revisionPath;
  const entries = path !== undefined && isUserVisible(target) ? [DATA_LINK, target] : [DATA_LINK];
  const consulted = {
    directories: [...directories, { path: directory, identity: identityOf(stat), entries }],
  };
  const gap = { kind: 'missing', isGap: true, changedNs: stat.mtimeNs, consulted } as const;
  // The link may lead anywhere.
  const found = path === undefined ? undefined : yield* disk.lstat(path);
  if (path === undefined || found?.isSymbolicLink()) {
    return { kind: 'unreadable', error: targetError('ERR_TARGET_LAYOUT', link), consulted };
  }
  if (!found?.isDirectory()) {
    // It may have been removed because there is another one by now, or a directory above it was away for a moment.
    const { afresh } = disk;
    if (yield* wereRetargeted(wayToRevision.links, afresh)) return MOVED;
    return (yield* afresh.lstat(path))?.isDirectory() ? MOVED : gap;
  }
  return { kind: 'revision', path, way: wayToRevision, consulted };
}

/** The files of a revision. */
export interface VolumeReading {
  readonly kind: 'read';
  readonly revision: Revision;
  /** By key, in order. The same object until something changes. */
  readonly files: ReadonlyMap<string, FileSnapshot>;
  /** The limit that kept contents from being read, in words. */
  readonly limited: string | undefined;
  /** The directories of the revision as they were listed, by path. */
  readonly listed: ReadonlyMap<string, Inode>;
  /** Those of the links in the revision, also of links that lead to no file. */
  readonly routes: LinkRoutes;
}

/** Remembers the files of one volume. */
export class KnownVolume {
  readonly #path: string;
  readonly #limits: ReadLimits;
  readonly #rotation = new Rotation<FileSnapshot>();
  /** Those of the links in the revision, as far as the last look has come. */
  #routes = new LinkRoutes();
  #last: VolumeReading | undefined;
  /** Whether something writes into the known revision, so that every look verifies all of it. */
  #isWritten = false;
  /** Whether the last look has not ended well, so that the next one verifies all of it. */
  #isInDoubt = false;

  /** @param path the watched path. */
  constructor(path: string, limits: ReadLimits) {
    this.#path = path;
    this.#limits = limits;
  }

  /** The directories that links in the revision lead through, as far as the last look has come. */
  get through(): readonly ConsultedDirectory[] {
    return [...this.#routes.directories()];
  }

  /** Verifies the known revision, or reads a new one. */
  *look(revision: Revision, extent: Extent, disk: Disk): Steps<VolumeReading | Moved> {
    const last = this.#last;
    const isKnown = last?.revision.path === revision.path && last.revision.way.links === revision.way.links;
    const verified = this.#isInDoubt || this.#isWritten ? 'all' : extent;
    this.#isInDoubt = true;
    if (isKnown && (yield* isAsRead(last, this.#unverified(last, verified), disk))) {
      this.#routes = last.routes;
      this.#isInDoubt = false;
      return (this.#last = { ...last, revision });
    }
    const known = last && { files: last.files, isSameRevision: isKnown };
    const routes = (this.#routes = new LinkRoutes());
    const found = yield* readRevision(this.#path, revision, this.#limits, known, routes, disk);
    if (found === MOVED) return MOVED;
    const isSame = isKnown && haveSameFiles(last.files, found.files);
    this.#isWritten = isKnown && (this.#isWritten || !isSame);
    this.#isInDoubt = false;
    return (this.#last = isSame ? { ...found, files: last.files } : found);
  }

  /** The files of the known revision that a look verifies besides those that links lead to. */
  *#unverified({ files, routes }: VolumeReading, extent: Extent): Iterable<FileSnapshot> {
    if (extent === 'hints') return;
    const entries = extent === 'all' ? files : this.#rotation.next(files, VERIFIED_AT_ONCE);
    for (const [key, file] of entries) if (!routes.all.has(key)) yield file;
  }
}

/** Whether no file was changed, added or removed. */
function haveSameFiles(
  before: ReadonlyMap<string, FileSnapshot>,
  files: ReadonlyMap<string, FileSnapshot>,
): boolean {
  return files.size === before.size && [...files].every(([key, file]) => before.get(key) === file);
}

/**
 * Whether the directories of a revision, where its links lead, and these files in it are unchanged since they were
 * read.
 */
function* isAsRead(reading: VolumeReading, files: Iterable<FileSnapshot>, disk: Disk): Steps<boolean> {
  if (!(yield* areAsListed(reading.listed, disk))) return false;
  for (const key of reading.routes.all.keys()) {
    yield* nextSlice();
    if (!(yield* leadsAsRead(key, reading, disk))) return false;
  }
  for (const file of files) {
    yield* nextSlice();
    if (!isSameFile(file, yield* disk.lstat(file.realPath))) return false;
  }
  return true;
}

/** Whether a link in a revision leads to the same file in the same way, or still to none. */
function* leadsAsRead(key: string, { revision, files, routes }: VolumeReading, disk: Disk): Steps<boolean> {
  const link = yield* resolve(within(revision.path, key), disk);
  const file = files.get(key);
  if (routes.set(key, link.route.directories)) return false;
  if (!file) return !isFailure(link) && !isFile(link);
  const { links } = joinWays(revision.way, link.route.way);
  return isFile(link) && FileSnapshot.stampOf(file).links === links && isSameFile(file, link.stat);
}

function isSameFile(file: FileSnapshot, stat: BigIntStats | undefined): boolean {
  const { inode, timestampsAreReliable, isSteady } = FileSnapshot.stampOf(file);
  return stat !== undefined && timestampsAreReliable && isSteady && isUnchanged(stat, inode);
}

/** Whether the directories of a revision have the entries that were listed. */
function* areAsListed(listed: ReadonlyMap<string, Inode>, disk: Disk): Steps<boolean> {
  for (const [path, inode] of listed) {
    yield* nextSlice();
    const stat = yield* disk.lstat(path);
    if (!stat || !isUnchanged(stat, inode)) return false;
  }
  return true;
}

/**
 * Reads a revision.
 * @param path the watched path.
 * @param known the files that were read last, and whether they come from the same revision, so that most of them are
 * unchanged.
 * @param routes receives those of the links in the revision.
 */
function* readRevision(
  path: string,
  revision: Revision,
  limits: ReadLimits,
  known: { readonly files: ReadonlyMap<string, FileSnapshot>; readonly isSameRevision: boolean } | undefined,
  routes: LinkRoutes,
  disk: Disk,
): Steps<VolumeReading | Moved> {
  const listed = new Map<string, Inode>();
  const places: { readonly key: string; readonly place: FilePlace }[] = [];
  /** The directories that are still to be listed, as prefixes of keys. */
  const unlisted = [''];
  for (let below = unlisted.pop(); below !== undefined; below = unlisted.pop()) {
    yield* nextSlice();
    const directory = below === '' ? revision.path : within(revision.path, below.slice(0, -1));
    const stat = yield* disk.lstat(directory);
    const entries = stat?.isDirectory() ? yield* disk.list(directory, stat) : undefined;
    if (!stat || !entries) return MOVED;
    listed.set(directory, inodeOf(stat));
    const slice = slices();
    for (const entry of entries) {
      yield* slice();
      if (below === '' && !isUserVisible(entry.name)) continue;
      const key = `${below}${entry.name}`;
      const found = { path: within(path, key), realPath: within(directory, entry.name) };
      if (entry.isDirectory()) unlisted.push(`${key}/`);
      else if (entry.isFile()) places.push({ key, place: { ...found, way: revision.way } });
      else if (entry.isSymbolicLink()) {
        yield* nextSlice();
        const link = yield* resolve(found.realPath, disk);
        routes.set(key, link.route.directories);
        if (isFailure(link)) throw link.error.cause;
        if (!isFile(link)) continue;
        const way = joinWays(revision.way, link.route.way);
        places.push({ key, place: { path: found.path, realPath: link.path, way } });
      }
    }
  }
  places.sort((one, other) => (one.key < other.key ? -1 : 1));
  const totals = new ReadTotals(limits);
  const files = new Map<string, FileSnapshot>();
  for (const { key, place } of places) {
    yield* nextSlice();
    const kept = places.length > limits.maxFiles ? 'identities' : totals.kept;
    const wanted = { kept, maxContentBytes: limits.maxContentBytes };
    const stat = known?.isSameRevision ? yield* disk.lstat(place.realPath) : undefined;
    const file = yield* fileAt(place, stat, known?.files.get(key), wanted, disk);
    if (!file) return MOVED;
    files.set(key, file);
    totals.count(file.size, 1);
    if (totals.kept === 'digests' && kept === 'contents') dropContents(files);
  }
  // If links and directories are unchanged, all files existed at one instant.
  const proof = disk.afresh;
  if (yield* wereRetargeted(revision.way.links, proof)) return MOVED;
  if (!(yield* areAsListed(listed, proof))) return MOVED;
  return { kind: 'read', revision, files, limited: totals.limited, listed, routes };
}

type Kind<K> = Extract<Resolution, { kind: K }>;

function isFile(link: Resolution): link is Kind<'found'> {
  return link.kind === 'found' && link.stat.isFile();
}

/** Whether a call has failed; otherwise a link that is unreadable leads to no file. */
function isFailure(link: Resolution): link is Kind<'unreadable'> & { error: { cause: Error } } {
  return link.kind === 'unreadable' && link.error.cause !== undefined;
}

/** Handles files that together are too large. */
function dropContents(files: Map<string, FileSnapshot>): void {
  for (const [key, file] of files) if (FileSnapshot.bytesOf(file)) files.set(key, file.withoutContent());
}
