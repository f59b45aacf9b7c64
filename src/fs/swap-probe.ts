/**
 * Reads a key of a volume right after a swap, in the fewest calls: no generator, no promise, nothing that is not needed
 * to say what the file holds now. It is prepared when the key is observed, and answers only in the usual case; a whole
 * check has to follow.
 *
 * | call                                  | finds                                | then                                |
 * |---------------------------------------|--------------------------------------|-------------------------------------|
 * | `readlink` of `..data`                | where it led before                  | nothing was swapped                 |
 * |                                       | another name in the volume           | the next call                       |
 * | `readlink` of each other link         | where it led before                  | the next call                       |
 * | `open`, `fstat`, `read` of the key    | a file, as long as it says it is     | this is what the target holds       |
 * | any of them                           | anything else, or it fails           | no answer: the whole check finds it |
 *
 * Why the answer is true: at the moment of the first call `..data` led to the revision that is read. The other links
 * led there afterwards as they had before, and kubelet completes a revision before it links it, and never writes into
 * it again. What happens after the first call leads to a hint, and so to another check.
 */
import { basename, dirname } from 'node:path';

import type { FileSystemCalls } from '../core/file-system.js';
import { readFileNow } from './file-reading.js';
import type { LinkChain } from './link-chain.js';
import { MAX_BYTES_AT_ONCE, type Found, type SwapReader } from './observation.js';
import { DATA_LINK } from './volume-layout.js';

type Hop = readonly [place: string, target: string];

/** What is before and after the name of the revision. */
interface Around {
  readonly before: string;
  readonly after: string;
}

const NO_DIRECTORIES: ReadonlyMap<string, string> = new Map();

/** Where to look for a swap. */
export class SwapProbe implements SwapReader {
  readonly place: string;
  readonly #chain: LinkChain;
  readonly #path: string;
  readonly #key: string;
  readonly #target: string;
  /** The real path of the file, before and after the name of the revision. */
  readonly #realPath: Around;
  /** `LinkChain.links`, before and after the target of this link. */
  readonly #links: Around;
  readonly #others: readonly Hop[];
  readonly #maxContentBytes: number;

  private constructor({ chain, snapshot }: Found, [place, target]: Hop, maxContentBytes: number) {
    const { path, realPath } = snapshot;
    this.place = place;
    this.#target = target;
    this.#chain = chain;
    this.#path = path;
    this.#key = basename(path);
    const directory = `${dirname(place)}/`;
    this.#realPath = { before: directory, after: realPath.slice(directory.length + target.length) };
    const [before = '', after = ''] = chain.links.split(`${place}\0${target}`, 2);
    this.#links = { before: `${before}${place}\0`, after };
    this.#others = [...chain.hops].filter((hop) => hop[0] !== place);
    this.#maxContentBytes = Math.min(maxContentBytes, MAX_BYTES_AT_ONCE);
  }

  /** Undefined for what is no key of a volume. */
  static of(found: Found, maxContentBytes: number): SwapProbe | undefined {
    const { chain, snapshot } = found;
    if (snapshot.kind !== 'file' || chain.revision === undefined) return undefined;
    const data = [...chain.hops].filter(([place]) => place.endsWith(`/${DATA_LINK}`)).at(-1);
    if (!data || data[1].includes('/')) return undefined;
    const revision = `${dirname(data[0])}/${data[1]}/`;
    const isInside = (path: string): boolean => path.startsWith(revision);
    if (!isInside(snapshot.realPath) || [...chain.hops.keys()].some(isInside)) return undefined;
    return new SwapProbe(found, data, maxContentBytes);
  }

  read(calls: FileSystemCalls): Found | undefined {
    const { place } = this;
    try {
      const revision = calls.readlink(place);
      if (revision === this.#target || revision.includes('/')) return undefined;
      for (const [other, target] of this.#others) if (calls.readlink(other) !== target) return undefined;
      const realPath = this.#realPath.before + revision + this.#realPath.after;
      const links = this.#links.before + revision + this.#links.after;
      const maxContentBytes = this.#maxContentBytes;
      const file = readFileNow({ path: this.#path, realPath, revision, links, maxContentBytes }, calls);
      if (!file) return undefined;
      const { snapshot, signature } = file;
      const hops = new Map(this.#chain.hops).set(place, revision);
      const chain = { ...this.#chain, hops, links, revision };
      const files = new Map([[this.#key, file]]);
      return { kind: 'found', chain, snapshot, files, directories: NO_DIRECTORIES, signature };
    } catch {
      return undefined;
    }
  }
}
