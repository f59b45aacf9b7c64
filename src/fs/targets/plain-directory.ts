/**
 * The files in a plain directory, not those in directories below. It remembers what it found, so that the work of a
 * check depends on what may have changed, and not on how many files there are.
 *
 * | what led to the check                        | what is checked                                                     |
 * |----------------------------------------------|---------------------------------------------------------------------|
 * | hints that name entries                      | all entries if they are no more than `VERIFIED_AT_ONCE`, else       |
 * |                                              | these, and what links lead to                                       |
 * | hints that name none, or names with two dots, | everything                                                          |
 * | many hints, another directory, a failure     |                                                                     |
 * | a resync                                     | the directory, the next `VERIFIED_AT_ONCE` files in turn, and what  |
 * |                                              | links lead to                                                       |
 * | a directory that a resync finds other than   | its entries: all of them if they are no more than                   |
 * | it was listed, or soon after it was changed  | `VERIFIED_AT_ONCE`, else those that have come or gone               |
 * | a file that a resync finds other than it was | the file                                                            |
 *
 * So when every hint is lost, what is added or removed is found at the next resync, and so is everything else in a
 * directory of at most `VERIFIED_AT_ONCE` files. In a larger one each file is verified once in (files /
 * `VERIFIED_AT_ONCE`) resyncs.
 *
 * | an entry                                        | is                                                               |
 * |-------------------------------------------------|------------------------------------------------------------------|
 * | with a name that begins with two dots           | no key                                                           |
 * | that is a directory, a socket, …, or vanishes   | no key                                                           |
 * | that is a link to a file, or mounted by itself  | a key; what it leads through is watched                          |
 * | that is a link to `..data/…`                    | of a volume without its revision: the directory is missing       |
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { hasMoved } from '../../core/errno.js';
import type { FileSystemCalls } from '../../core/file-system.js';
import { within } from '../absolute-path.js';
import { call, PAUSE, type Effects } from '../effects.js';
import { identityOf, signatureAt, signatureOf } from '../file-identity.js';
import { linkAt, areLinksUnchanged, mergeChains, type ResolvedChain } from '../link-chain.js';
import { resolveChain } from '../resolve-chain.js';
import { listDirectory } from '../list-directory.js';
import { ListingProof } from '../listing-proof.js';
import {
  VERIFIED_AT_ONCE,
  type AllowedMounts,
  type Found,
  type Moment,
  type Observation,
  type ReadLimits,
  type Replacement,
} from '../observation.js';
import type { PersistentMap } from '../persistent-map.js';
import { Rotation } from '../rotation.js';
import { SetSnapshot } from '../snapshot.js';
import { Draft, Subtrees } from '../tree-draft.js';
import { keyBelow } from '../tree-key.js';
import { joined, sameFile, treeFileAt, type TreeFile } from '../tree-part.js';
import { DATA_LINK, isRevisionName, isUserVisible, KUBELET_PENDING_LINK } from '../volume-layout.js';
import { Touched, type Places } from './touched.js';
import { TreeFiles } from './tree-files.js';

/** The directory as it was found on the way. */
interface Place {
  readonly path: string;
  readonly stat: BigIntStats;
}

/** What leads elsewhere. */
type Way = 'link' | 'mount';

/** What was found in the directory. */
interface Listing {
  /** The signature of the directory when it was listed. */
  readonly signature: string;
  /** The files that are in the directory itself. */
  readonly own: PersistentMap<TreeFile>;
  /** The entries that lead elsewhere, and the files there. */
  readonly ways: PersistentMap<Way>;
  readonly linked: PersistentMap<TreeFile>;
  readonly files: PersistentMap<TreeFile>;
  /** Whether it holds a revision, a pending link, or a `..data` that leads nowhere. */
  readonly hasRevision: boolean;
}

/** Remembers the files of one directory. */
export class PlainDirectory {
  readonly #path: string;
  readonly #files: TreeFiles;
  readonly #touched = new Touched();
  /** Whether it is no longer as it was listed. */
  #isToList = false;
  readonly #turns = new Rotation<TreeFile>();
  #listing: Listing | undefined;
  readonly #listings = new ListingProof();
  /** Identifies the directory and the links by which it was reached. */
  #place = '';
  #last: Found | undefined;

  /** @param path as it is watched. */
  constructor(path: string, limits: ReadLimits) {
    this.#path = path;
    this.#files = new TreeFiles(path, { ...limits, content: true, isWhole: true });
  }

  /** See `Target.touch`. */
  touch(path?: string): void {
    this.#touched.add(path);
  }

  /** See `Target.readReplacement`. A few files are checked together, since they may have been written together. */
  readReplacement(path: string, calls: FileSystemCalls): Replacement | undefined {
    const name = this.#last && keyBelow(this.#last.snapshot.realPath, path);
    return name === undefined || isSmall(this.#listing)
      ? undefined
      : this.#files.readReplacement(name, path, calls);
  }

  /** Throws what the calls throw; then everything is checked the next time. */
  *observe(chain: ResolvedChain, at: Place, allowedMounts: AllowedMounts, now: Moment): Effects<Observation> {
    try {
      return yield* this.#observe(chain, at, allowedMounts, now);
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  /** See `Target.isUnchanged`. What links lead to is left to `observe`. */
  *isUnchanged(chain: Found['chain']): Effects<boolean> {
    const listing = this.#listing;
    if (!listing) return false;
    try {
      if (!(yield* areLinksUnchanged(chain))) this.touch();
    } catch {
      this.touch();
    }
    const root = this.#last?.snapshot.realPath ?? '';
    if ((yield* signatureAt(root)) !== listing.signature) this.#isToList = true;
    for (const _ of this.#listings.next(1)) this.#isToList = true;
    for (const [, { path, signature }] of this.#turns.next(listing.own, VERIFIED_AT_ONCE)) {
      if ((yield* signatureAt(path)) !== signature) this.touch(path);
    }
    const isNothingNoted = this.#touched.isEmpty && !this.#isToList;
    return isNothingNoted && this.#files.isProven && listing.ways.size === 0;
  }

  #forget(): void {
    this.touch();
    this.#listing = undefined;
    this.#listings.forget();
    this.#last = undefined;
  }

  *#observe(
    chain: ResolvedChain,
    at: Place,
    allowedMounts: AllowedMounts,
    now: Moment,
  ): Effects<Observation> {
    const place = `${chain.links} ${at.path} ${identityOf(at.stat)}`;
    const before = place === this.#place ? this.#listing : undefined;
    this.#place = place;
    const touched = before ? this.#touched.take() : (this.#touched.take(), 'all');
    const names = touched === 'all' ? touched : namesIn(at.path, touched);
    const reading = new DirectoryReading(at, chain.links, before);
    const isToList = this.#isToList;
    this.#isToList = false;
    const isWhole = names === 'all' || isSmall(before);
    if (isWhole) yield* reading.list(false);
    else {
      yield* reading.visit(names);
      if (isToList) yield* reading.list(true);
    }
    const { listing, chains, hasDanglingKeys } = yield* reading.end(allowedMounts);
    const merged = mergeChains(chain, chains);
    if (chains.some(({ end }) => end.kind === 'disallowed')) {
      this.#forget();
      return { kind: 'disallowed', chain: merged };
    }
    if (hasDanglingKeys || (listing.hasRevision && listing.files.size === 0)) {
      this.#forget();
      return { kind: 'missing', chain: merged };
    }
    const named = touched === 'all' || names === 'all' ? 'all' : [...names, ...keysBehind(listing, touched)];
    const unsettled = yield* this.#files.take(listing.files, named, now);
    // They are checked again when they are due to be reported.
    for (const { path } of unsettled) this.touch(path);
    this.#listing = listing;
    yield* this.#listings.take(new Map([['', listing.signature]]), isWhole || isToList ? [''] : [], now);
    return this.#found(merged, at.path, listing.signature);
  }

  #found(chain: Found['chain'], realPath: string, directory: string): Found {
    const { seen: files, states, version, limited } = this.#files;
    const directories = new Map([[realPath, directory]]);
    if (this.#last?.files === files && this.#last.snapshot.realPath === realPath)
      this.#last = { ...this.#last, chain, directories };
    else {
      this.#last = {
        kind: 'found',
        chain,
        snapshot: new SetSnapshot({
          kind: 'directory',
          path: this.#path,
          realPath,
          revision: undefined,
          files: states,
        }),
        files,
        directories,
        signature: String(version),
        remembered: true,
        limited,
      };
    }
    return this.#last;
  }
}

/** Whether all of it is checked at once: what was written together is found together, however its hints arrive. */
function isSmall(listing: Listing | undefined): boolean {
  return listing !== undefined && listing.own.size + listing.ways.size <= VERIFIED_AT_ONCE;
}

/** The entries in which these paths are; everything if that is unknown, or if they are not for users. */
function namesIn(directory: string, touched: Exclude<Places, 'all'>): Places {
  const names = new Set<string>();
  for (const path of touched) {
    const [name] = keyBelow(directory, path)?.split('/', 1) ?? [];
    if (name === undefined) continue;
    if (name === '' || !isUserVisible(name)) return 'all';
    names.add(name);
  }
  return names;
}

/** The keys of the files elsewhere that are at these paths. */
function keysBehind({ linked }: Listing, touched: Exclude<Places, 'all'>): string[] {
  return [...linked].filter(([, { path }]) => touched.has(path)).map(([key]) => key);
}

/** What one check reads of a directory: names and signatures, no contents. */
class DirectoryReading {
  readonly #at: Place;
  readonly #links: string;
  readonly #before: Listing | undefined;
  readonly #own: Draft<TreeFile>;
  readonly #ways: Draft<Way>;
  #signature: string;
  #hasRevision: boolean;

  /** @param links those that led to the directory. */
  constructor(at: Place, links: string, before: Listing | undefined) {
    this.#at = at;
    this.#links = links;
    this.#before = before;
    this.#own = new Draft(sameFile, before?.own);
    this.#ways = new Draft<Way>(Object.is, before?.ways);
    this.#signature = before?.signature ?? '';
    this.#hasRevision = before?.hasRevision ?? false;
  }

  /** Lists the directory. @param isQuick among many entries the files that are known by name are not visited. */
  *list(isQuick: boolean): Effects<void> {
    const { path, stat } = this.#at;
    const entries = yield* listDirectory(path, stat);
    const isByName = isQuick && entries.length > VERIFIED_AT_ONCE;
    this.#signature = signatureOf(stat);
    this.#hasRevision = showsRevision(entries.filter(({ name }) => !isUserVisible(name)));
    for (const entry of entries) {
      const { name } = entry;
      if (!isUserVisible(name) || entry.isDirectory()) continue;
      if (isByName && entry.isFile() && this.#own.get(name)) this.#own.keep(name);
      else yield* this.#visit(name);
      yield PAUSE;
    }
    for (const draft of [this.#own, this.#ways]) yield* draft.sweep([], new Subtrees(['']));
  }

  /** Visits some of its entries. */
  *visit(names: Iterable<string>): Effects<void> {
    for (const name of names) yield* this.#visit(name);
    for (const draft of [this.#own, this.#ways]) yield* draft.sweep(names, new Subtrees([]));
  }

  /** Follows what leads elsewhere, which no hint may report. */
  *end(allowedMounts: AllowedMounts): Effects<{
    readonly listing: Listing;
    readonly chains: readonly ResolvedChain[];
    /** Whether some of its links lead to `..data`, which leads nowhere. */
    readonly hasDanglingKeys: boolean;
  }> {
    const [own, ways] = [yield* this.#own.map(), yield* this.#ways.map()];
    const draft = new Draft(sameFile, this.#before?.linked);
    const chains: ResolvedChain[] = [];
    let hasDanglingKeys = false;
    for (const [name, way] of ways) {
      const path = within(this.#at.path, name);
      if (way === 'link' && (yield* leadsToData(path))) {
        // It may lead to a file again by the time it is followed, and the others would be of another instant.
        hasDanglingKeys = true;
        continue;
      }
      const chain = yield* resolveChain(path, allowedMounts);
      chains.push(chain);
      const { end, links } = chain;
      if (end.kind === 'found' && end.stat.isFile())
        draft.set(name, treeFileAt(end.path, links, end.stat, draft.get(name)));
    }
    yield* draft.sweep([], new Subtrees(['']));
    const linked = yield* draft.map();
    const { own: ownBefore, linked: linkedBefore, files: before } = this.#before ?? {};
    const files = yield* joined(own, linked, ownBefore, linkedBefore, before);
    const listing = { signature: this.#signature, own, ways, linked, files, hasRevision: this.#hasRevision };
    return { listing, chains, hasDanglingKeys };
  }

  *#visit(name: string): Effects<void> {
    const path = within(this.#at.path, name);
    try {
      const stat = yield* call('lstat', path);
      if (stat.isSymbolicLink()) this.#ways.set(name, 'link');
      else if (!stat.isFile()) return;
      // The file system that is mounted there may be one that must not be waited for.
      else if (stat.dev !== this.#at.stat.dev) this.#ways.set(name, 'mount');
      else this.#own.set(name, treeFileAt(path, this.#links, stat, this.#own.get(name)));
    } catch (error) {
      if (!hasMoved(error)) throw error;
    }
  }
}

/** Whether it is a volume, unless it has keys of its own. A copy of one made with `cp -rL` has a directory `..data`. */
function showsRevision(entries: readonly Dirent[]): boolean {
  const data = entries.find(({ name }) => name === DATA_LINK);
  if (data && !data.isSymbolicLink()) return false;
  return entries.some(
    (entry) =>
      entry === data ||
      entry.name === KUBELET_PENDING_LINK ||
      (isRevisionName(entry.name) && entry.isDirectory()),
  );
}

function* leadsToData(path: string): Effects<boolean> {
  try {
    // Replaced meanwhile: then it is resolved like any other entry.
    return (yield* linkAt(path))?.startsWith(`${DATA_LINK}/`) === true;
  } catch (error) {
    if (hasMoved(error)) return false;
    throw error;
  }
}
