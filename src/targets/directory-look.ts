/**
 * Looks at a directory: at a revision of a volume with all that is below it, or at the files of a plain directory.
 *
 * | | in a revision | in a plain directory |
 * |---|---|---|
 * | directories below | entered | not entered |
 * | an entry that vanishes meanwhile | start over | is not there |
 * | a link to a file | followed | followed, and what it leads through is watched |
 * | a link to `..data/…` | – | nothing is published: the directory is missing |
 * | names that begin with two dots | – (kubelet refuses them) | are not keys |
 * | afterwards | the links and the directory must be as before, else start over | – |
 */
import { hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';

import { hasMoved } from '../errors.js';
import { fileAgain, readSeenFile } from '../file-reading.js';
import { followSwap, mergeChains, resolveChain, signatureOf, type LinkChain } from '../link-chain.js';
import type { Familiar, Found, ReadLimits, SeenFile, Sighting } from '../sighting.js';
import { SetSnapshot } from '../snapshot.js';
import { call, type Steps } from '../steps.js';
import { DATA_LINK, isUserVisible } from '../volume-layout.js';
import { limitReading, type Limited } from './read-limits.js';

/** Which directory, and how it was found. */
export interface DirectoryLook {
  readonly path: string;
  readonly chain: LinkChain;
  readonly realPath: string;
  readonly limits: ReadLimits;
}

/** A file in the directory, not yet read. */
interface Entry {
  readonly key: string;
  readonly realPath: string;
  readonly stat: BigIntStats;
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
}

/**
 * All its files; undefined when they moved meanwhile. Throws what the calls throw.
 * @param known what an earlier look found: files with the same signature are not read again.
 */
export function* lookAtDirectory(
  look: DirectoryLook,
  known?: Found,
  familiar?: Familiar,
): Steps<Sighting | undefined> {
  const { path, realPath, limits } = look;
  const isVolume = look.chain.revision !== undefined;
  const listing = new Listing(look, isVolume, familiar);
  yield* listing.read('');
  const { entries, directories } = listing;
  const chain = mergeChains(look.chain, listing.chains);
  if (listing.chains.some(({ end }) => end.kind === 'unfamiliar')) return { kind: 'unfamiliar', chain };
  if (listing.isUnlinkedVolume) return { kind: 'missing', chain };
  const sizes = entries.map(({ stat }) => Number(stat.size));
  const { kept, limited } = limitReading(sizes, limits);
  const files = new Map<string, SeenFile>();
  for (const entry of entries) {
    try {
      const file = yield* seenFile(entry, look, kept, known?.files.get(entry.key));
      if (file) files.set(entry.key, file);
      else if (isVolume) return undefined;
    } catch (error) {
      if (isVolume || !hasMoved(error)) throw error;
    }
  }
  // Unchanged, so nobody had begun to replace or remove it while it was read.
  if (isVolume && !(yield* stands(chain, realPath, directories))) return undefined;
  return {
    kind: 'found',
    chain,
    snapshot: new SetSnapshot({
      kind: isVolume ? 'volume' : 'directory',
      path,
      realPath,
      revision: chain.revision,
      files: new Map([...files].map(([key, { snapshot }]) => [key, snapshot])),
    }),
    files,
    directories,
    signature: signatureOfSet(files),
    limited,
  };
}

/** One signature for those of all. */
export function signatureOfSet(files: ReadonlyMap<string, SeenFile>): string {
  const lines = [...files].map(([key, { signature }]) => `${key}\0${signature}`);
  return hash('sha256', lines.join('\n'), 'hex');
}

class Listing {
  readonly entries: Entry[] = [];
  /** The signatures of the directories read, by path. */
  readonly directories = new Map<string, string>();
  /** It has the links of a volume, but no `..data`: in the gap of a swap, or broken. */
  isUnlinkedVolume = false;
  /** Where the links among the entries lead. */
  readonly chains: LinkChain[] = [];
  readonly #look: DirectoryLook;
  readonly #isVolume: boolean;
  readonly #familiar: Familiar;

  constructor(look: DirectoryLook, isVolume: boolean, familiar: Familiar) {
    this.#look = look;
    this.#isVolume = isVolume;
    this.#familiar = familiar;
  }

  /** @param below empty, or a key with a slash at its end. */
  *read(below: string): Steps<void> {
    const { realPath: root } = this.#look;
    const directory = below === '' ? root : `${root}/${below.slice(0, -1)}`;
    this.directories.set(directory, signatureOf(yield* call('lstat', directory)));
    for (const name of (yield* call('readdir', directory)).sort()) {
      if (below === '' && !isUserVisible(name)) continue;
      try {
        yield* this.#add(`${below}${name}`, `${directory}/${name}`);
      } catch (error) {
        if (this.#isVolume || !hasMoved(error)) throw error;
      }
    }
  }

  *#add(key: string, realPath: string): Steps<void> {
    const stat = yield* call('lstat', realPath);
    if (stat.isFile()) this.entries.push({ key, realPath, stat, links: this.#look.chain.links });
    else if (stat.isDirectory() && this.#isVolume) yield* this.read(`${key}/`);
    else if (stat.isSymbolicLink()) {
      if (!this.#isVolume && (yield* call('readlink', realPath)).startsWith(`${DATA_LINK}/`)) {
        // By now it may lead to a file again; others would be of another instant.
        this.isUnlinkedVolume = true;
        return;
      }
      const chain = yield* resolveChain(realPath, this.#familiar);
      this.chains.push(chain);
      const { end, links } = chain;
      if (end.kind === 'found' && end.stat.isFile()) {
        this.entries.push({ key, realPath: end.path, stat: end.stat, links });
      }
    }
  }
}

function* seenFile(
  { key, realPath, stat, links }: Entry,
  { path, chain: { revision }, limits }: DirectoryLook,
  kept: Limited['kept'],
  known: SeenFile | undefined,
): Steps<SeenFile | undefined> {
  const maxContentBytes = kept === 'identities' ? -1 : limits.maxContentBytes;
  const digestOnly = kept === 'digests';
  const isKept = (known?.snapshot.content === undefined) === (digestOnly || stat.size > maxContentBytes);
  if (known?.signature === signatureOf(stat) && isKept)
    return fileAgain(known, realPath, { links, revision });
  const place = { path: `${path}/${key}`, realPath, revision, links };
  return yield* readSeenFile({ ...place, found: stat, maxContentBytes, digestOnly });
}

function* stands(
  chain: LinkChain,
  realPath: string,
  directories: ReadonlyMap<string, string>,
): Steps<boolean> {
  if (yield* followSwap(chain)) return false;
  return signatureOf(yield* call('lstat', realPath)) === directories.get(realPath);
}
