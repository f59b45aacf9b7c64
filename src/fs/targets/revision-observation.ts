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
import { fileAgain, readSeenFile } from '../file-reading.js';
import type { WatchedDirectory } from '../../core/watch-backend.js';
import { identityIn, signatureOf } from '../file-identity.js';
import { linksStand, mergeChains, wayOf, type LinkChain, type Way } from '../link-chain.js';
import { resolveChain } from '../resolve-chain.js';
import type { AllowedMounts, Found, ReadLimits, SeenFile, Observation } from '../observation.js';
import { FileSnapshot, SetSnapshot } from '../snapshot.js';
import { call, freshly, PAUSE, type Effects } from '../effects.js';
import { isRevisionName, isUserVisible } from '../volume-layout.js';
import { listDirectory } from '../list-directory.js';
import { limitReading, type Limited } from './read-limits.js';

/** A directory, and how it was found. */
export interface DirectoryPlace {
  readonly path: string;
  readonly chain: Way;
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
interface Entry {
  readonly key: string;
  readonly realPath: string;
  /** Undefined if the listing alone shows that it is a file. */
  readonly stat: BigIntStats | undefined;
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
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
  const chain = mergeChains(wayOf(place.chain), isOfKubelet ? listing.chains : [...listing.chains, listing]);
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
  if (!(yield* freshly(stands(chain, realPath, directories)))) return undefined;
  const snapshots = new Map<string, FileSnapshot>();
  for (const [key, file] of files) snapshots.set(key, file.snapshot);
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
 * The files of a revision; the size of each is read when it is open. What is as in the revision before shares its
 * bytes, so that comparing both later takes no time. Undefined when one is too large, or all are
 * too many: then the sizes have to be known in advance.
 */
function* readAtOnce(
  entries: readonly Entry[],
  { path, chain: { revision }, limits, maxBytes = Infinity }: DirectoryPlace,
  known: Found | undefined,
): Effects<Map<string, SeenFile> | undefined> {
  const { maxFiles, maxContentBytes } = limits;
  const maxTotalBytes = Math.min(limits.maxTotalBytes, maxBytes);
  if (entries.length > maxFiles) return undefined;
  const files = new Map<string, SeenFile>();
  let total = 0;
  for (const { key, realPath, stat: found, links } of entries) {
    const reading = { path: `${path}/${key}`, realPath, revision, links, found, maxContentBytes };
    const file = (yield ['part', readSeenFile(reading)]) as SeenFile | undefined;
    if (!file || !FileSnapshot.bytesOf(file.snapshot)) return undefined;
    total += file.snapshot.size;
    if (total > maxTotalBytes) return undefined;
    files.set(key, { ...file, snapshot: file.snapshot.sharing(known?.files.get(key)?.snapshot) });
    // Comparing takes a fraction of the time of reading.
    yield PAUSE;
  }
  return files;
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
    const file = yield* seenFile(entry, place, kept, known?.files.get(entry.key));
    if (!file) return undefined;
    files.set(entry.key, file);
    // Files that are not read make no calls.
    yield PAUSE;
  }
  return { files, limited };
}

/** Whether these files were not written into, neither while they were read nor since an earlier check. */
function isUnwritten(files: ReadonlyMap<string, SeenFile>, before: Found | undefined): boolean {
  if (before && (!before.immutable || before.files.size !== files.size)) return false;
  for (const [key, { steady, signature }] of files) {
    if (!steady || (before && before.files.get(key)?.signature !== signature)) return false;
  }
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
  readonly chains: LinkChain[] = [];
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
        this.entries.push({ key, realPath, stat: undefined, links: this.#place.chain.links });
        continue;
      }
      yield* this.#add(key, realPath, entry);
    }
  }

  *#add(key: string, realPath: string, listed: Dirent): Effects<void> {
    const { links } = this.#place.chain;
    const stat = this.#isPublished ? undefined : yield* call('lstat', realPath);
    const entry = stat ?? listed;
    if (entry.isFile()) this.entries.push({ key, realPath, stat, links });
    else if (entry.isDirectory()) yield* this.read(`${key}/`);
    else if (entry.isSymbolicLink()) {
      const chain = yield* resolveChain(realPath, this.#allowedMounts);
      this.chains.push(chain);
      const { end } = chain;
      if (end.kind === 'found' && end.stat.isFile()) {
        this.entries.push({ key, realPath: end.path, stat: end.stat, links: chain.links });
      }
    }
  }
}

function* seenFile(
  { key, realPath, stat, links }: StatedEntry,
  { path, chain: { revision }, limits }: DirectoryPlace,
  kept: Limited['kept'],
  known: SeenFile | undefined,
): Effects<SeenFile | undefined> {
  const maxContentBytes = kept === 'identities' ? -1 : limits.maxContentBytes;
  const digestOnly = kept === 'digests';
  if (known?.signature === signatureOf(stat)) {
    const isKept = FileSnapshot.bytesOf(known.snapshot) !== undefined;
    const isWanted = !digestOnly && stat.size <= maxContentBytes;
    if (isKept === isWanted) return fileAgain(known, realPath, { links, revision });
  }
  const place = { path: `${path}/${key}`, realPath, revision, links };
  return yield* readSeenFile({ ...place, found: stat, maxContentBytes, digestOnly });
}

function* stands(chain: Way, realPath: string, directories: ReadonlyMap<string, string>): Effects<boolean> {
  if (!(yield* linksStand(chain))) return false;
  return signatureOf(yield* call('lstat', realPath)) === directories.get(realPath);
}

function byName(one: Dirent, other: Dirent): number {
  return one.name < other.name ? -1 : 1;
}
