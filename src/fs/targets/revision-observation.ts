/**
 * Observes a revision of a volume with everything below it.
 *
 * | what is there                 | then                                                                                   |
 * |-------------------------------|----------------------------------------------------------------------------------------|
 * | a directory                   | entered                                                                                |
 * | a link to a file              | followed, and what it leads through is watched                                         |
 * | an entry that vanishes        | start over                                                                             |
 * | afterwards                    | the links and the directory must be as before, else start over                         |
 *
 * A revision with kubelet's name takes the fewest calls, since it is not written into once it is published: its listing
 * says which entries are files, and a file's size and timestamps are read once, when it is open. If it is written into
 * after all, the next check of its files shows that, and from then on it is checked like any other revision.
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { sha256 } from '../../core/digest.js';
import type { FileSystemCalls } from '../../core/file-system.js';
import { fileAgain, readFileNow, readSeenFile, type FilePlace } from '../file-reading.js';
import type { WatchedDirectory } from '../../core/watch-backend.js';
import { identityIn, signatureOf } from '../file-identity.js';
import {
  areLinksUnchanged,
  mergeChains,
  withoutEnd,
  type ResolvedChain,
  type LinkChain,
} from '../link-chain.js';
import { resolveChain } from '../resolve-chain.js';
import type { AllowedMounts, Found, ReadLimits, SeenFile, Observation } from '../observation.js';
import { FileSnapshot, SetSnapshot } from '../snapshot.js';
import { call, costOfReading, direct, freshly, PAUSE, type Effects } from '../effects.js';
import { isRevisionName, isUserVisible } from '../volume-layout.js';
import { listDirectory } from '../list-directory.js';
import { limitReading, type Limited } from './read-limits.js';

/** A directory, and how it was found. */
export interface DirectoryPlace {
  readonly path: string;
  readonly chain: LinkChain;
  readonly realPath: string;
  readonly limits: ReadLimits;
  /** Whether this revision was written into after it was published. */
  readonly isWritten?: boolean;
  /** The observation ends when more entries than this are listed. */
  readonly maxEntries?: number;
  /** The observation ends when the files hold more bytes than this. */
  readonly maxBytes?: number;
}

/** A file in the directory, not yet read. */
interface Entry extends FilePlace {
  readonly key: string;
  /** Undefined if the listing alone shows that it is a file. */
  readonly stat: BigIntStats | undefined;
}

/**
 * All files of the revision; undefined when they moved meanwhile or are too many. Throws what the calls throw.
 * @param known the result of an earlier check: files with the same signature are not read again.
 */
export function* observeRevision(
  place: DirectoryPlace,
  known?: Found,
  allowedMounts?: AllowedMounts,
): Effects<Observation | undefined> {
  const { path, realPath } = place;
  const { revision } = place.chain;
  const isOfKubelet = revision !== undefined && isRevisionName(revision);
  const isPublished = isOfKubelet && !place.isWritten;
  const listing = new Listing(place, isPublished, allowedMounts);
  yield* listing.read('');
  if (listing.isTooLong) return undefined;
  const { entries, signatures: directories } = listing;
  const chain = mergeChains(
    withoutEnd(place.chain),
    isOfKubelet ? listing.chains : [...listing.chains, listing],
  );
  if (listing.chains.some(({ end }) => end.kind === 'disallowed')) return { kind: 'disallowed', chain };
  let limited: string | undefined;
  const before = known?.snapshot.realPath === realPath ? known : undefined;
  let files = isPublished && !before ? yield* readAtOnce(entries, place, known) : undefined;
  if (!files) {
    const seen = yield* readWithinLimits(entries, place, known);
    if (!seen) return undefined;
    ({ files, limited } = seen);
  }
  // Unchanged, so it was neither replaced nor removed while it was read.
  if (!(yield* freshly(isUnchanged(chain, realPath, directories)))) return undefined;
  const snapshots = new Map<string, FileSnapshot>();
  files.forEach(({ snapshot }, key) => snapshots.set(key, snapshot));
  const immutable = isPublished && listing.chains.length === 0 && isUnwritten(files, before);
  return {
    kind: 'found',
    chain,
    snapshot: new SetSnapshot({
      kind: 'volume',
      path,
      realPath,
      revision,
      files: snapshots,
    }),
    files,
    directories,
    signature: immutable ? [...directories].join('\n') : signatureOfSet(files),
    immutable,
    limited,
  };
}

/**
 * The files of a revision; the size of each is read when it is open. Undefined when one is too large, or all are too
 * many: then the sizes have to be known in advance.
 */
function* readAtOnce(
  entries: readonly Entry[],
  place: DirectoryPlace,
  known: Found | undefined,
): Effects<ReadonlyMap<string, SeenFile> | undefined> {
  const { limits, maxBytes = Infinity } = place;
  if (entries.length > limits.maxFiles) return undefined;
  const reading = new RevisionReading(entries, {
    maxContentBytes: limits.maxContentBytes,
    maxTotalBytes: Math.min(limits.maxTotalBytes, maxBytes),
    known: known?.files,
  });
  for (let next = reading.next; next; next = reading.next) {
    if ((yield* direct((calls) => reading.readSome(calls))) > 0) continue;
    const { stat: found, ...entry } = next;
    const before = known?.files.get(entry.key)?.snapshot;
    const { maxContentBytes } = limits;
    const file = yield* readSeenFile({ ...entry, found, maxContentBytes, before });
    if (!file || !reading.add(entry.key, file)) return undefined;
    // Comparing takes a fraction of the time of reading.
    yield PAUSE;
  }
  return reading.files;
}

/** The cost of one step, which is a part of a slice, in calls. */
const STEP_COST = 100;

interface RevisionLimits {
  readonly maxContentBytes: number;
  readonly maxTotalBytes: number;
  /** The files of the revision before. */
  readonly known: Found['files'] | undefined;
}

/** The files of a revision, read one after another. */
class RevisionReading {
  readonly files = new Map<string, SeenFile>();
  readonly #entries: readonly Entry[];
  readonly #maxContentBytes: number;
  readonly #known: Found['files'] | undefined;
  #next = 0;
  #bytesLeft: number;

  constructor(entries: readonly Entry[], { maxContentBytes, maxTotalBytes, known }: RevisionLimits) {
    this.#entries = entries;
    this.#maxContentBytes = maxContentBytes;
    this.#bytesLeft = maxTotalBytes;
    this.#known = known;
  }

  /** The next one to read; undefined: there is none. */
  get next(): Entry | undefined {
    return this.#entries[this.#next];
  }

  /** Reads the next ones, up to one that is unusual. Returns the cost. */
  readSome(calls: FileSystemCalls): number {
    let cost = 0;
    for (let next = this.next; next && !next.stat && cost < STEP_COST; next = this.next) {
      const { key } = next;
      const file = readFileNow(next, this.#maxContentBytes, calls, this.#known?.get(key)?.snapshot);
      if (!file || !this.add(key, file)) return cost;
      cost += costOfReading(file.snapshot.size);
    }
    return cost;
  }

  /** Adds the next one; false if its content is not kept, or all are too large. */
  add(key: string, file: SeenFile): boolean {
    const { snapshot } = file;
    if (!FileSnapshot.bytesOf(snapshot) || snapshot.size > this.#bytesLeft) return false;
    this.#bytesLeft -= snapshot.size;
    this.#next += 1;
    this.files.set(key, file);
    return true;
  }
}

/**
 * The files, read where their signatures are unknown and as far as the limits allow. Undefined when they moved
 * meanwhile, or hold more than `maxBytes`.
 */
function* readWithinLimits(
  listed: readonly Entry[],
  place: DirectoryPlace,
  known: Found | undefined,
): Effects<{ files: Map<string, SeenFile>; limited: string | undefined } | undefined> {
  const entries: StatedEntry[] = [];
  for (const { stat, ...entry } of listed) {
    entries.push({ ...entry, stat: stat ?? (yield* call('lstat', entry.realPath)) });
  }
  const sizes = entries.map(({ stat }) => Number(stat.size));
  const { maxBytes = Infinity } = place;
  if (maxBytes < sizes.reduce((sum, size) => sum + size, 0)) return undefined;
  const { kept, limited } = limitReading(sizes, place.limits);
  const files = new Map<string, SeenFile>();
  for (const entry of entries) {
    const file = yield* seenFile(entry, place.limits, kept, known?.files.get(entry.key));
    if (!file) return undefined;
    files.set(entry.key, file);
    // Files that are not read make no calls.
    yield PAUSE;
  }
  return { files, limited };
}

/** Whether these files were not written into, neither while they were read nor since an earlier check. */
function isUnwritten(files: ReadonlyMap<string, SeenFile>, before: Found | undefined): boolean {
  for (const { steady } of files.values()) if (!steady) return false;
  if (!before) return true;
  if (!before.immutable || before.files.size !== files.size) return false;
  for (const [key, { signature }] of files) if (before.files.get(key)?.signature !== signature) return false;
  return true;
}

/** One signature that represents all of them. */
export function signatureOfSet(files: ReadonlyMap<string, SeenFile>): string {
  const lines = [...files].map(([key, { signature }]) => `${key}\0${signature}`);
  return sha256(lines.join('\n'));
}

type StatedEntry = Entry & { readonly stat: BigIntStats };

class Listing {
  readonly entries: Entry[] = [];
  /** The signatures of the directories that were read, by path. */
  readonly signatures = new Map<string, string>();
  /** Where the links among the entries lead. */
  readonly chains: ResolvedChain[] = [];
  /** A volume is one file system. */
  readonly mounts: ReadonlyMap<string, string> = new Map();
  #listed = 0;
  readonly #place: DirectoryPlace;
  readonly #isPublished: boolean;
  readonly #allowedMounts: AllowedMounts;

  /** @param isPublished nothing in it is replaced any more: every entry stays what the listing says. */
  constructor(place: DirectoryPlace, isPublished: boolean, allowedMounts: AllowedMounts) {
    this.#place = place;
    this.#isPublished = isPublished;
    this.#allowedMounts = allowedMounts;
  }

  /** The directories that were listed, to be watched. */
  get directories(): WatchedDirectory[] {
    return [...this.signatures].map(([path, signature]) => ({ path, identity: identityIn(signature) }));
  }

  /** Whether it was ended early. */
  get isTooLong(): boolean {
    return this.#listed > (this.#place.maxEntries ?? Infinity);
  }

  /** @param below empty, or a key with a trailing slash. */
  *read(below: string): Effects<void> {
    const { realPath: root } = this.#place;
    const directory = below === '' ? root : `${root}/${below.slice(0, -1)}`;
    const stat = yield* call('lstat', directory);
    if (!stat.isDirectory()) throw Object.assign(new Error(`${directory} was replaced`), { code: 'ENOTDIR' });
    this.signatures.set(directory, signatureOf(stat));
    const listed = yield* listDirectory(directory, stat);
    this.#listed += listed.length;
    for (const entry of listed.sort(byName)) {
      if (this.isTooLong) return;
      const { name } = entry;
      if (below === '' && !isUserVisible(name)) continue;
      const [key, realPath] = [`${below}${name}`, `${directory}/${name}`];
      if (this.#isPublished && entry.isFile()) {
        this.#addFile(key, realPath, this.#place.chain.links);
        continue;
      }
      yield* this.#add(key, realPath, entry);
    }
  }

  *#add(key: string, realPath: string, listed: Dirent): Effects<void> {
    const { links } = this.#place.chain;
    const stat = this.#isPublished ? undefined : yield* call('lstat', realPath);
    const entry = stat ?? listed;
    if (entry.isFile()) this.#addFile(key, realPath, links, stat);
    else if (entry.isDirectory()) yield* this.read(`${key}/`);
    else if (entry.isSymbolicLink()) {
      const chain = yield* resolveChain(realPath, this.#allowedMounts);
      this.chains.push(chain);
      const { end } = chain;
      if (end.kind === 'found' && end.stat.isFile()) {
        this.#addFile(key, end.path, chain.links, end.stat);
      }
    }
  }

  #addFile(key: string, realPath: string, links: string, stat?: BigIntStats): void {
    const { path, chain } = this.#place;
    this.entries.push({ key, path: `${path}/${key}`, realPath, revision: chain.revision, links, stat });
  }
}

function* seenFile(
  { stat, ...place }: StatedEntry,
  limits: ReadLimits,
  kept: Limited['kept'],
  known: SeenFile | undefined,
): Effects<SeenFile | undefined> {
  const maxContentBytes = kept === 'identities' ? -1 : limits.maxContentBytes;
  const digestOnly = kept === 'digests';
  if (known?.signature === signatureOf(stat)) {
    const isKept = FileSnapshot.bytesOf(known.snapshot) !== undefined;
    const isWanted = !digestOnly && stat.size <= maxContentBytes;
    if (isKept === isWanted) return fileAgain(known, place.realPath, place);
  }
  return yield* readSeenFile({ ...place, found: stat, maxContentBytes, digestOnly });
}

/** Whether neither a link nor the directory has changed since they were read. */
function* isUnchanged(
  chain: LinkChain,
  realPath: string,
  directories: ReadonlyMap<string, string>,
): Effects<boolean> {
  if (!(yield* areLinksUnchanged(chain))) return false;
  return signatureOf(yield* call('lstat', realPath)) === directories.get(realPath);
}

function byName(one: Dirent, other: Dirent): number {
  return one.name < other.name ? -1 : 1;
}
