/** One path: a file, a volume, a directory or nothing, whatever is there at the time. */
import type { BigIntStats } from 'node:fs';

import { basename } from 'node:path';

import { within } from '../absolute-path.js';
import { errnoOf, hasMoved } from '../../core/errno.js';
import type { FileSystemCalls } from '../../core/file-system.js';
import { fileAgain, readSeenFile } from '../file-reading.js';
import { identityOf, signatureOf } from '../file-identity.js';
import {
  followSwap,
  hopsOf,
  areLinksUnchanged,
  unstableChain,
  withoutEnd,
  type ResolvedChain,
  type LinkChain,
} from '../link-chain.js';
import { resolveChain } from '../resolve-chain.js';
import { readingError, targetError } from '../target-error.js';
import {
  MAX_BYTES_AT_ONCE,
  MAX_FILES_AT_ONCE,
  NO_DIRECTORIES,
  type AllowedMounts,
  type Found,
  type Moment,
  type ReadLimits,
  type SeenFile,
  type Observation,
  type Replacement,
  type Target,
} from '../observation.js';
import { Rotation } from '../rotation.js';
import { call, runSync, type Effects } from '../effects.js';
import { SingleEntryMap } from '../single-entry-map.js';
import { SwapProbe } from '../swap-probe.js';
import { DATA_LINK, isInsideRevision, isRevisionName } from '../volume-layout.js';
import { PlainDirectory } from './plain-directory.js';
import { readReplacedFile } from './replaced-file.js';
import { observeRevision, type DirectoryPlace } from './revision-observation.js';

/** How often a target that is replaced between being found and being read is resolved again. */
const MAX_READS = 20;

/** The target at a path. */
export class PathTarget implements Target {
  readonly path: string;
  readonly #limits: ReadLimits;
  /** The number of hints about writes that neither a link nor a directory would show. */
  #touches = 0;
  /** The number of these hints when the files were last checked. */
  #examined = 0;
  /** Where the next resync of a volume with many files continues. */
  #rotation: Rotation<SeenFile> | undefined;
  /** The directory of the last revision that was written into after it was published. */
  #written: string | undefined;
  /** While a file is there. */
  #file: Found | undefined;
  /** While a plain directory is there. */
  #plain: PlainDirectory | undefined;

  constructor(path: string, limits: ReadLimits) {
    this.path = path;
    this.#limits = limits;
  }

  fresh(): PathTarget {
    return new PathTarget(this.path, this.#limits);
  }

  /** Only in a revision is a write noted: it has no native watch. Other events show in the links or in the directories. */
  touch(path?: string): void {
    this.#plain?.touch(path);
    if (path === undefined || isInsideRevision(path)) this.#touches += 1;
  }

  *observe(
    known?: Found,
    allowedMounts?: AllowedMounts,
    now: Moment = { monotonic: 0 },
  ): Effects<Observation> {
    const touches = this.#touches;
    const unwritten = known?.immutable && touches === this.#examined ? known : undefined;
    const seen = yield* this.#observe(known, unwritten, allowedMounts, now);
    if (seen.kind !== 'found' || seen.snapshot.kind !== 'directory') this.#plain = undefined;
    this.#file = seen.kind === 'found' && seen.snapshot.kind === 'file' ? seen : undefined;
    if (seen.kind !== 'found') return seen;
    this.#examined = touches;
    const { realPath } = seen.snapshot;
    if (known?.immutable && !seen.immutable && known.snapshot.realPath === realPath) this.#written = realPath;
    return seen;
  }

  /** @param unwritten the same as `known`, if there is no reason to check each of its files. */
  *#observe(
    known: Found | undefined,
    unwritten: Found | undefined,
    allowedMounts: AllowedMounts,
    now: Moment,
  ): Effects<Observation> {
    let chain: ResolvedChain | undefined;
    for (let reading = 0; reading < MAX_READS; reading += 1) {
      chain = yield* this.resolve(allowedMounts);
      const { end } = chain;
      if (end.kind === 'missing') return { kind: 'missing', chain };
      if (end.kind !== 'found') return { ...end, chain };
      const { path: realPath, stat } = end;
      if (!stat.isFile() && !stat.isDirectory()) {
        const cause = new Error('it is neither a regular file nor a directory');
        return { kind: 'unreadable', chain, error: targetError('ERR_TARGET_NOT_FILE', realPath, cause) };
      }
      try {
        if (stat.isDirectory() && chain.revision === undefined) {
          this.#plain ??= new PlainDirectory(this.path, this.#limits);
          return yield* this.#plain.observe(chain, { path: realPath, stat }, allowedMounts, now);
        }
        if (unwritten && (yield* this.#isSameRevision(chain, unwritten)))
          return { ...unwritten, chain: withoutEnd(chain) };
        const found = stat.isFile()
          ? yield* this.#observeFile(chain, realPath, stat, known)
          : yield* observeRevision(this.#directoryAt(chain, realPath), known, allowedMounts);
        if (found) return found;
      } catch (error) {
        if (hasMoved(error)) continue;
        if (errnoOf(error) === undefined) throw error;
        const at = (error as NodeJS.ErrnoException).path ?? end.path;
        return { kind: 'unreadable', chain, error: readingError(at, error) };
      }
    }
    return { kind: 'unstable', chain: chain ?? (yield* this.resolve(allowedMounts)) };
  }

  /** The kernel resolves the path when it is opened, so the content is what the target holds at that moment. */
  *observeSwap({ chain, snapshot }: Found, allowedMounts?: AllowedMounts): Effects<Found | undefined> {
    if (chain.links === '' || snapshot.kind === 'directory') return undefined;
    try {
      const swapped = yield* followSwap(chain);
      if (!swapped) return undefined;
      if (snapshot.kind !== 'file') {
        const place = this.#directoryAt(swapped.chain, swapped.realPath);
        // It may be something else than a file now, which only a complete check handles.
        const seen = yield* observeRevision(
          { ...place, maxEntries: MAX_FILES_AT_ONCE, maxBytes: MAX_BYTES_AT_ONCE },
          undefined,
          allowedMounts,
        );
        return seen?.kind === 'found' ? seen : undefined;
      }
      return yield* this.#readFile(swapped.chain, swapped.realPath);
    } catch {
      return undefined;
    }
  }

  swapReader(found: Found): SwapProbe | undefined {
    return SwapProbe.of(found, this.#limits);
  }

  readReplacement(path: string, calls: FileSystemCalls): Replacement | undefined {
    return this.#plain ? this.#plain.readReplacement(path, calls) : this.#readReplacedFile(path, calls);
  }

  /** A file that was published by a link is replaced by retargeting the link. */
  #readReplacedFile(path: string, calls: FileSystemCalls): Replacement | undefined {
    const { snapshot, chain, files } = this.#file ?? {};
    if (snapshot?.realPath !== path || !chain || chain.revision !== undefined) return undefined;
    const [[key, { inode }] = ['', { inode: '' }]] = files ?? [];
    const { revision, links } = chain;
    const place = { path: this.path, realPath: path, revision, links };
    const file = readReplacedFile(place, this.#limits.maxContentBytes, inode, calls);
    return file && leadsHere(chain, calls) ? { key, file } : undefined;
  }

  /**
   * Takes one or two calls for each link, and one for each directory and file. A file that is added or removed
   * shows in its directory, and a write in place causes a hint; so it is enough to check some of many files each
   * time.
   */
  *isUnchanged(found: Found): Effects<boolean> {
    if (this.#plain) return yield* this.#plain.isUnchanged(found.chain);
    if (this.#touches !== this.#examined) return false;
    if (yield* this.#isAsFound(found)) return true;
    this.#touches += 1;
    return false;
  }

  *#isAsFound({ chain, directories, files }: Found): Effects<boolean> {
    try {
      if (!(yield* areLinksUnchanged(chain))) return false;
      if (!(yield* areAsBefore(directories))) return false;
      for (const [, { snapshot, signature, links }] of (this.#rotation ??= new Rotation()).next(
        files,
        MAX_FILES_AT_ONCE,
      )) {
        // A file behind a link of its own is left to a complete check.
        if (links !== chain.links) return false;
        if (signatureOf(yield* call('lstat', snapshot.realPath)) !== signature) return false;
      }
      return true;
    } catch {
      return false;
    }
  }

  /** For a directory, also resolves its `..data` link, if it has one; if not, every entry of it matters. */
  *resolve(allowedMounts?: AllowedMounts): Effects<ResolvedChain> {
    for (let walk = 0; walk < MAX_READS; walk += 1) {
      const chain = yield* resolveChain(this.path, allowedMounts);
      if (chain.end.kind !== 'found' || !chain.end.stat.isDirectory()) return chain;
      const data = yield* resolveChain(`${this.path}/${DATA_LINK}`, allowedMounts);
      if (data.end.kind === 'disallowed' || data.end.kind === 'unstable') return data;
      // Otherwise the path led to another directory in between.
      if (data.links.startsWith(chain.links)) return volumeOrDirectory(chain, chain.end.path, data);
    }
    return unstableChain(this.path);
  }

  #directoryAt(chain: LinkChain, realPath: string): DirectoryPlace {
    const { path } = this;
    return { path, chain, realPath, limits: this.#limits, isWritten: realPath === this.#written };
  }

  *#isSameRevision({ links, end }: ResolvedChain, { chain, snapshot, directories }: Found): Effects<boolean> {
    if (links !== chain.links || end.kind !== 'found' || end.path !== snapshot.realPath) return false;
    return yield* areAsBefore(directories);
  }

  *#observeFile(
    chain: ResolvedChain,
    realPath: string,
    stat: BigIntStats,
    known: Found | undefined,
  ): Effects<Found | undefined> {
    const [file] = known?.snapshot.kind === 'file' ? known.files.values() : [];
    if (file?.signature !== signatureOf(stat)) return yield* this.#readFile(chain, realPath, stat);
    return foundFile(chain, fileAgain(file, realPath, chain));
  }

  *#readFile(chain: LinkChain, realPath: string, found?: BigIntStats): Effects<Found | undefined> {
    const { path } = this;
    const { revision, links } = chain;
    const { maxContentBytes } = this.#limits;
    const seen = yield* readSeenFile({ path, realPath, revision, links, found, maxContentBytes });
    return seen && foundFile(chain, seen);
  }
}

/**
 * The chain of a volume or of a plain directory.
 * @param directory the real path.
 * @param data the chain of its `..data`. Only a link makes it a volume: a copy made with `cp -rL` has a directory
 * there.
 */
function volumeOrDirectory(chain: ResolvedChain, directory: string, data: ResolvedChain): ResolvedChain {
  const place = within(directory, DATA_LINK);
  const target = hopsOf(data).get(place);
  const { end } = data;
  if (target !== undefined) {
    const isInside = isEntryName(target) && (end.kind !== 'found' || end.path === within(directory, target));
    if (!isInside)
      return { ...data, end: { kind: 'unreadable', error: targetError('ERR_TARGET_LAYOUT', place) } };
    if (end.kind === 'found' && end.stat.isDirectory()) {
      const revision = { path: end.path, identity: identityOf(end.stat) };
      return isRevisionName(target) ? data : { ...data, directories: [...data.directories, revision] };
    }
  }
  if (end.kind !== 'found' && end.kind !== 'missing') return data;
  const directories = data.directories.map(({ path, identity, ...rest }) =>
    path === directory ? { path, identity } : { path, identity, ...rest },
  );
  return { ...chain, directories };
}

function isEntryName(target: string): boolean {
  return !target.includes('/') && target !== '.' && target !== '..';
}

function* areAsBefore(directories: Found['directories']): Effects<boolean> {
  for (const [path, signature] of directories) {
    if (signatureOf(yield* call('lstat', path)) !== signature) return false;
  }
  return true;
}

/** Whether the path still leads to where it led, after that was read: a link on the way may have been retargeted. */
function leadsHere(chain: LinkChain, calls: FileSystemCalls): boolean {
  try {
    return runSync(areLinksUnchanged(chain), calls);
  } catch {
    return false;
  }
}

function foundFile(chain: LinkChain, file: SeenFile): Found {
  const { snapshot, signature } = file;
  const files = new SingleEntryMap(basename(snapshot.path), file);
  return { kind: 'found', chain: withoutEnd(chain), snapshot, files, directories: NO_DIRECTORIES, signature };
}
