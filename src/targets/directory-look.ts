/**
 * Looks at a directory: at a revision of a volume with all that is below it, or at the files of a plain directory.
 *
 * | | in a revision | in a plain directory |
 * |---|---|---|
 * | directories below | entered | not entered |
 * | an entry that vanishes meanwhile | start over | is not there |
 * | a link to a file | followed | followed, and what it leads through is watched |
 * | names that begin with two dots | – (kubelet refuses them) | are not keys |
 * | afterwards | the links and the directory must be as before, else start over | – |
 */
import { hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';

import { hasMoved } from '../errors.js';
import { fileAgain, readSeenFile, signatureOf } from '../file-reading.js';
import { followSwap, mergeChains, resolveChain, type LinkChain } from '../link-chain.js';
import type { Familiar, Found, ReadLimits, SeenFile, Sighting } from '../sighting.js';
import { SetSnapshot } from '../snapshot.js';
import { call, type Steps } from '../steps.js';
import { isUserVisible } from '../volume-layout.js';

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
  const limit = limitOf(entries, limits);
  const files = new Map<string, SeenFile>();
  for (const entry of entries) {
    try {
      const file = yield* seenFile(entry, look, limit, known?.files.get(entry.key));
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
    limited: limit.reached,
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
      const chain = yield* resolveChain(realPath, this.#familiar);
      this.chains.push(chain);
      const { end, links } = chain;
      if (end.kind === 'found' && end.stat.isFile()) {
        this.entries.push({ key, realPath: end.path, stat: end.stat, links });
      }
    }
  }
}

/** What is read of each file. */
interface Limit {
  readonly maxContentBytes: number;
  readonly digestOnly: boolean;
  readonly reached: string | undefined;
}

function limitOf(entries: readonly Entry[], limits: ReadLimits): Limit {
  const { maxFiles, maxContentBytes, maxTotalBytes } = limits;
  if (entries.length > maxFiles) {
    const reached = `it holds ${entries.length} files, more than maxFiles (${maxFiles}): they are told apart by identity, and none is read`;
    return { maxContentBytes: -1, digestOnly: false, reached };
  }
  const small = entries.filter(({ stat }) => stat.size <= maxContentBytes);
  const total = small.reduce((sum, { stat }) => sum + Number(stat.size), 0);
  if (total > maxTotalBytes) {
    const reached = `its files hold ${total} bytes, more than maxTotalBytes (${maxTotalBytes}): only their digests are kept`;
    return { maxContentBytes, digestOnly: true, reached };
  }
  const large = entries.length - small.length;
  const reached =
    large > 0
      ? `${large} of its files are larger than maxContentBytes (${maxContentBytes}): they are told apart by identity, and not read`
      : undefined;
  return { maxContentBytes, digestOnly: false, reached };
}

function* seenFile(
  { key, realPath, stat, links }: Entry,
  { path, chain: { revision } }: DirectoryLook,
  { maxContentBytes, digestOnly }: Limit,
  known: SeenFile | undefined,
): Steps<SeenFile | undefined> {
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
