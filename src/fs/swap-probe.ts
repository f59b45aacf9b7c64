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
import { basename, dirname } from 'node:path';

import type { FileSystemCalls } from '../core/file-system.js';
import type { Ask } from './effects.js';
import { inodeIn, signatureOf } from './file-identity.js';
import { readFileNow } from './file-reading.js';
import type { LinkChain } from './link-chain.js';
import {
  MAX_BYTES_AT_ONCE,
  NO_DIRECTORIES,
  type Found,
  type ReadLimits,
  type SeenFile,
  type Swap,
  type SwapReader,
} from './observation.js';
import { SetSnapshot, type FileState } from './snapshot.js';
import { DATA_LINK, isRevisionName, isUserVisible } from './volume-layout.js';

/** A volume with more keys is left to the check: reading these takes about a millisecond. */
const MAX_KEYS = 64;

/** A volume that holds more bytes is left to the check. No ConfigMap or Secret does. */
const MAX_VOLUME_BYTES = 1_048_576;

type Hop = readonly [place: string, target: string];

/** What is before and after the name of the revision. */
interface Around {
  readonly before: string;
  readonly after: string;
}

/** The link, and the known target, in which to detect a swap. */
export class SwapProbe implements SwapReader {
  readonly place: string;
  readonly #chain: LinkChain;
  readonly #path: string;
  readonly #key: string;
  readonly #isVolume: boolean;
  /** Of a key: as it was observed. */
  readonly #file: SeenFile | undefined;
  readonly #inode: number;
  readonly #target: string;
  /** The real path, before and after the name of the revision. */
  readonly #realPath: Around;
  /** `LinkChain.links`, before and after the target of this link. */
  readonly #links: Around;
  readonly #others: readonly Hop[];
  readonly #limits: ReadLimits;
  readonly #maxContentBytes: number;

  private constructor({ chain, snapshot, files }: Found, [place, target]: Hop, limits: ReadLimits) {
    const { path, realPath } = snapshot;
    this.place = place;
    this.#target = target;
    this.#chain = chain;
    this.#path = path;
    this.#key = basename(path);
    this.#isVolume = snapshot.kind === 'volume';
    [this.#file] = this.#isVolume ? [] : files.values();
    this.#inode = this.#file ? inodeIn(this.#file.signature) : 0;
    const directory = `${dirname(place)}/`;
    this.#realPath = { before: directory, after: realPath.slice(directory.length + target.length) };
    const [before = '', after = ''] = chain.links.split(`${place}\0${target}`, 2);
    this.#links = { before: `${before}${place}\0`, after };
    this.#others = [...chain.hops].filter((hop) => hop[0] !== place);
    this.#limits = limits;
    this.#maxContentBytes = Math.min(limits.maxContentBytes, MAX_BYTES_AT_ONCE);
  }

  /** Undefined for what is neither a key of a volume nor a volume of plain files. */
  static of(found: Found, limits: ReadLimits): SwapProbe | undefined {
    const { chain, snapshot } = found;
    if (chain.revision === undefined) return undefined;
    if (snapshot.kind !== 'file' && !(snapshot.kind === 'volume' && isSmallRevision(found))) return undefined;
    const data = [...chain.hops].filter(([place]) => place.endsWith(`/${DATA_LINK}`)).at(-1);
    if (!data || data[1].includes('/')) return undefined;
    const revision = `${dirname(data[0])}/${data[1]}/`;
    const isInside = (path: string): boolean => `${path}/`.startsWith(revision);
    if (!isInside(snapshot.realPath) || [...chain.hops.keys()].some(isInside)) return undefined;
    return new SwapProbe(found, data, limits);
  }

  /**
   * Other names with two dots beside the link are those of other revisions and of the link that is yet to be renamed:
   * no path leads through them. About all other names nothing is known, since a file system may fold case.
   */
  concerns(path: string): boolean {
    const { before: directory } = this.#realPath;
    if (!path.startsWith(`${directory}..`) || path.includes('/', directory.length)) return true;
    return (
      path.length - directory.length < 3 ||
      path === `${directory}${this.#target}` ||
      this.#chain.hops.has(path)
    );
  }

  read(calls: FileSystemCalls, isRehearsal = false): Swap | undefined {
    try {
      const revision = this.swappedTo(calls, isRehearsal);
      if (revision === undefined) return undefined;
      const swap = this.readRevision(revision, calls);
      return this.#isVolume && calls.readlink(this.place) !== revision ? undefined : swap;
    } catch {
      return undefined;
    }
  }

  /** Of a key, in one call for each link but `..data`, whose answer is shared, and one for the file. */
  stands(calls: FileSystemCalls, ask: Ask, isExamined: (inode: number) => boolean): boolean | undefined {
    const file = this.#file;
    if (!file) return undefined;
    if (ask(['readlink', this.place], calls, false) !== this.#target) return false;
    if (!isExamined(this.#inode)) return true;
    for (const [place, target] of this.#others) if (calls.readlink(place) !== target) return false;
    return signatureOf(calls.lstat(file.snapshot.realPath)) === file.signature;
  }

  /** The revision that is linked now; undefined if it is the same as before. Throws what the call throws. */
  swappedTo(calls: FileSystemCalls, isRehearsal: boolean): string | undefined {
    const revision = calls.readlink(this.place);
    const isAsBefore = revision === this.#target && !isRehearsal;
    return isAsBefore || revision.includes('/') ? undefined : revision;
  }

  /** What the target holds if this revision is the linked one. Throws what the calls throw. */
  readRevision(revision: string, calls: FileSystemCalls): Swap | undefined {
    if (!this.#others.every((hop) => calls.readlink(hop[0]) === hop[1])) return undefined;
    const realPath = this.#realPath.before + revision + this.#realPath.after;
    const links = this.#links.before + revision + this.#links.after;
    return this.#isVolume
      ? this.#readVolume(revision, realPath, links, calls)
      : this.#readKey(revision, realPath, links, calls);
  }

  #readKey(revision: string, realPath: string, links: string, calls: FileSystemCalls): Swap | undefined {
    const file = readFileNow({ path: this.#path, realPath, revision, links }, this.#maxContentBytes, calls);
    if (!file) return undefined;
    const { snapshot } = file;
    const files = new Map<string, SeenFile>().set(this.#key, file);
    const observation = (): Found => ({
      kind: 'found',
      chain: this.#chainTo(revision, links),
      snapshot,
      files,
      directories: NO_DIRECTORIES,
      signature: file.signature,
    });
    return { snapshot, files, links, observation };
  }

  #readVolume(revision: string, realPath: string, links: string, calls: FileSystemCalls): Swap | undefined {
    if (!isRevisionName(revision)) return undefined;
    const { maxFiles, maxTotalBytes } = this.#limits;
    const maxContentBytes = this.#maxContentBytes;
    const path = this.#path;
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
        chain: this.#chainTo(revision, links),
        snapshot,
        files,
        directories,
        signature: [...directories].join('\n'),
        immutable: true,
      };
    };
    return { snapshot, files, links, observation };
  }

  #chainTo(revision: string, links: string): LinkChain {
    const hops = new Map(this.#chain.hops).set(this.place, revision);
    return { ...this.#chain, hops, links, revision };
  }
}

/** Whether these are a few files, none of them behind a link or in a directory of its own. */
function isSmallRevision({ immutable, files, directories }: Found): boolean {
  return immutable === true && files.size <= MAX_KEYS && directories.size === 1;
}
