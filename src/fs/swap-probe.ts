/**
 * Reads a key or a small volume right after a swap, in the fewest calls: no generator, no promise, nothing that is not
 * needed to say what the target holds now. It is prepared when the target is observed, and answers only in the usual
 * case; a whole check has to follow.
 *
 * | call                                     | finds                             | then                                |
 * |------------------------------------------|-----------------------------------|-------------------------------------|
 * | `readlink` of `..data`                   | where it led before               | nothing was swapped                 |
 * |                                          | another name in the volume        | the next call                       |
 * | `readlink` of each other link            | where it led before               | the next call                       |
 * | of a volume: `lstat`, `readdir` of the   | a directory of a few keys         | the next call                       |
 * | revision                                 |                                   |                                     |
 * | `open`, `fstat`, `read` of each key      | a file, as long as it says it is  | of a key: this is what it holds     |
 * | of a volume: `readlink` of `..data`      | the same name as at first         | this is what the volume holds       |
 * | any of them                              | anything else, or it fails        | no answer: the whole check finds it |
 *
 * Why the answer is true: at the moment of the first call `..data` led to the revision that is read. The other links
 * led there afterwards as they had before, and kubelet completes a revision before it links it, and never writes into
 * it again. A set is read from one revision, which was the published one before and after. What happens after the first
 * call leads to a hint, and so to another check.
 */
import { dirname } from 'node:path';

import type { FileSystemCalls } from '../core/file-system.js';
import { inodeIn, signatureOf } from './file-identity.js';
import { readFileNow } from './file-reading.js';
import {
  hopsOf,
  linksOutside,
  areOtherLinksUnchanged,
  retargetedLinks,
  type LinkChain,
} from './link-chain.js';
import {
  MAX_BYTES_AT_ONCE,
  NO_DIRECTORIES,
  type Found,
  type ReadLimits,
  type SeenFile,
  type Swap,
  type SwapReader,
  type Turn,
} from './observation.js';
import { sharedLink } from './shared-directories.js';
import { SingleEntryMap } from './single-entry-map.js';
import { SetSnapshot, type FileState } from './snapshot.js';
import { DATA_LINK, isRevisionName, isUserVisible } from './volume-layout.js';

/** A volume with more keys is left to the check: reading these takes about a millisecond. */
const MAX_KEYS = 64;

/** A volume that holds more bytes is left to the check. No ConfigMap or Secret does. */
const MAX_VOLUME_BYTES = 1_048_576;

/** In place of the key and its file, for a volume. */
const NO_KEY: readonly [key: string, file: undefined] = ['', undefined];

/** The first examinations of files are spread over at most this many resyncs. */
const MAX_SPARED = 1_000;

/** Where a key is, or a volume. */
interface Place {
  readonly path: string;
  readonly realPath: string;
  readonly revision: string;
  readonly links: string;
}

/** The link, and the known target, in which to detect a swap. */
export class SwapProbe implements SwapReader {
  readonly place: string;
  readonly #found: Found;
  /** The name of the key, and the file as it was observed; empty and undefined for a volume. */
  readonly #key: string;
  readonly #file: SeenFile | undefined;
  /** The links that are not in the volume, as one string. */
  readonly #outside: string;
  /** The name of the revision. */
  readonly #target: string;
  readonly #limits: ReadLimits;
  /** The signature of the volume with which links and file were as they were observed. */
  #proven: string | undefined;
  /** How many resyncs come before the one in which the file is examined. At first it differs from file to file. */
  #spared: number;

  private constructor(found: Found, place: string, target: string, outside: string, limits: ReadLimits) {
    this.place = sharedLink(place);
    this.#found = found;
    const [entry = NO_KEY] = found.snapshot.kind === 'file' ? found.files : [];
    [this.#key, this.#file] = entry;
    this.#spared = this.#file ? inodeIn(this.#file.signature) % MAX_SPARED : 0;
    this.#outside = outside;
    this.#target = target;
    this.#limits = limits;
  }

  /** Undefined for what is neither a key of a volume nor a volume of plain files. */
  static of(found: Found, limits: ReadLimits): SwapProbe | undefined {
    const { chain, snapshot } = found;
    if (chain.revision === undefined) return undefined;
    if (snapshot.kind !== 'file' && !(snapshot.kind === 'volume' && isSmallRevision(found))) return undefined;
    const hops = hopsOf(chain);
    const place = [...hops.keys()].filter((each) => each.endsWith(`/${DATA_LINK}`)).at(-1);
    const target = chain.revision;
    if (place === undefined || target.includes('/')) return undefined;
    const revision = `${dirname(place)}/${target}/`;
    const isInside = (path: string): boolean => `${path}/`.startsWith(revision);
    if (!isInside(snapshot.realPath) || [...hops.keys()].some(isInside)) return undefined;
    return new SwapProbe(found, place, target, linksOutside(hops, dirname(place)), limits);
  }

  /**
   * Other names with two dots beside the link are those of other revisions and of the link that is yet to be renamed, unless
   * the path leads through them. About all other names nothing is known, since a file system may fold case.
   */
  concerns(path: string): boolean {
    const { chain } = this.#found;
    const directory = this.#directory;
    if (!path.startsWith(`${directory}..`) || path.includes('/', directory.length)) return true;
    return (
      path.length - directory.length < 3 ||
      path === `${directory}${this.#target}` ||
      hopsOf(chain).has(path) ||
      chain.directories.some((consulted) => consulted.path === path)
    );
  }

  read(calls: FileSystemCalls, isRehearsal = false): Swap | undefined {
    try {
      const revision = this.swappedTo(calls, isRehearsal);
      if (revision === undefined) return undefined;
      const swap = this.readRevision(revision, calls);
      return !this.#file && calls.readlink(this.place) !== revision ? undefined : swap;
    } catch {
      return undefined;
    }
  }

  /** A key makes calls of its own only when it is its turn; volume-signature.ts explains why that is enough. */
  isUnchanged(calls: FileSystemCalls, turn: Turn, timestampMs: number | undefined): boolean | undefined {
    const file = this.#file;
    if (!file) return undefined;
    const { revision, isPublished, proven } = turn.volume(this.place, timestampMs, calls);
    if (revision !== this.#target || !this.#isReached(calls, turn)) return false;
    const isAsBefore = proven !== undefined && proven === this.#proven;
    const isSpared = this.#isSpared(turn.slices) && isPublished;
    if (isAsBefore && isSpared) return true;
    this.#proven = proven;
    if (!areOtherLinksUnchanged(this.#found.chain.links, this.place, calls)) return false;
    return signatureOf(calls.lstat(file.snapshot.realPath)) === file.signature;
  }

  /** Whether the links that lead to the volume stand. */
  #isReached(calls: FileSystemCalls, { ask }: Turn): boolean {
    if (this.#outside === '') return true;
    const readlink = (place: string): string => ask(['readlink', place], calls, false) as string;
    return areOtherLinksUnchanged(this.#outside, this.place, { readlink });
  }

  /** Whether the file is left out in this turn: it is examined in one turn of so many. */
  #isSpared(slices: number): boolean {
    if (slices <= 1) return false;
    const spared = this.#spared % slices;
    this.#spared = spared === 0 ? slices - 1 : spared - 1;
    return spared > 0;
  }

  /** The revision that is linked now; undefined if it is the same as before. Throws what the call throws. */
  swappedTo(calls: FileSystemCalls, isRehearsal: boolean): string | undefined {
    const revision = calls.readlink(this.place);
    const isAsBefore = revision === this.#target && !isRehearsal;
    return isAsBefore || revision.includes('/') ? undefined : revision;
  }

  /** What the target holds if this revision is the linked one. Throws what the calls throw. */
  readRevision(revision: string, calls: FileSystemCalls): Swap | undefined {
    const { chain, snapshot } = this.#found;
    const links = retargetedLinks(chain.links, this.place, revision, calls);
    if (links === undefined) return undefined;
    const directory = this.#directory;
    const inRevision = snapshot.realPath.slice(directory.length + this.#target.length);
    const swapped = {
      path: snapshot.path,
      realPath: directory + revision + inRevision,
      revision,
      links,
    };
    return this.#file ? this.#readKey(swapped, calls) : this.#readVolume(swapped, calls);
  }

  /** Where the links and the revisions of the volume are, with a slash at the end. */
  get #directory(): string {
    return this.place.slice(0, -DATA_LINK.length);
  }

  #readKey(place: Place, calls: FileSystemCalls): Swap | undefined {
    const file = readFileNow(place, Math.min(this.#limits.maxContentBytes, MAX_BYTES_AT_ONCE), calls);
    if (!file) return undefined;
    const { snapshot } = file;
    const { links } = place;
    const files = new SingleEntryMap<SeenFile>(this.#key, file);
    const observation = (): Found => ({
      kind: 'found',
      chain: this.#chainOver(place),
      snapshot,
      files,
      directories: NO_DIRECTORIES,
      signature: file.signature,
    });
    return { snapshot, files, links, observation };
  }

  #readVolume(volume: Place, calls: FileSystemCalls): Swap | undefined {
    const { path, realPath, revision, links } = volume;
    if (!isRevisionName(revision)) return undefined;
    const { maxFiles, maxTotalBytes, maxContentBytes } = this.#limits;
    const directory = calls.lstat(realPath);
    const keys = calls.readdir(realPath);
    if (keys.length > Math.min(maxFiles, MAX_KEYS)) return undefined;
    const files = new Map<string, SeenFile>();
    const states = new Map<string, FileState>();
    let left = Math.min(maxTotalBytes, MAX_VOLUME_BYTES);
    for (const key of keys.sort()) {
      if (!isUserVisible(key)) return undefined;
      const place = { path: `${path}/${key}`, realPath: `${realPath}/${key}`, revision, links };
      // A link cannot be opened, and a directory is no file.
      const file = readFileNow(place, Math.min(maxContentBytes, left), calls);
      if (!file) return undefined;
      left -= file.snapshot.size;
      files.set(key, file);
      states.set(key, file.snapshot);
    }
    const snapshot = new SetSnapshot({ kind: 'volume', path, realPath, revision, files: states });
    const observation = (): Found => {
      const directories = new Map([[realPath, signatureOf(directory)]]);
      return {
        kind: 'found',
        chain: this.#chainOver(volume),
        snapshot,
        files,
        directories,
        signature: [...directories].join('\n'),
        immutable: true,
      };
    };
    return { snapshot, files, links, observation };
  }

  #chainOver({ revision, links }: Place): LinkChain {
    return { ...this.#found.chain, links, revision };
  }
}

/** Whether these are a few files, none of them behind a link or in a directory of its own. */
function isSmallRevision({ immutable, files, directories }: Found): boolean {
  return immutable === true && files.size <= MAX_KEYS && directories.size === 1;
}
