import type { BigIntStats } from 'node:fs';
import { dirname } from 'node:path';

import { MAX_LINKS, type FileSystemCalls } from '../core/file-system.js';
import { isNoLink } from '../core/errno.js';
import type { WatchedDirectory } from '../core/watch-backend.js';
import { call, type Effects } from './effects.js';
import type { TargetError } from './target-error.js';
import { DATA_LINK } from './volume-layout.js';

/** Where a path leads. */
export type ChainEnd =
  | { readonly kind: 'found'; readonly path: string; readonly stat: BigIntStats }
  /** `path` is the first entry on the way that does not exist. */
  | { readonly kind: 'missing'; readonly path: string }
  | { readonly kind: 'unreadable'; readonly error: TargetError }
  /** The path changed during every attempt; resolve it again soon. */
  | { readonly kind: 'unstable' }
  /** A mount point that is not in `allowedMounts`; nothing behind it was touched. */
  | { readonly kind: 'disallowed' };

/** Every directory that was consulted and every link that was followed while a path was resolved. */
export interface LinkChain {
  /** What was resolved. */
  readonly path: string;
  /** The directories whose change can change the meaning of the path. */
  readonly directories: readonly WatchedDirectory[];
  /** The directories at which a file system begins, by their identity. */
  readonly mounts: ReadonlyMap<string, string>;
  /**
   * The links followed and their targets, in order, as one string; see `hopsOf`. Equal strings mean that no link was
   * retargeted.
   */
  readonly links: string;
  /** The target of the last `..data` link on the way. */
  readonly revision: string | undefined;
}

/** A chain, and where it led at that instant. */
export interface ResolvedChain extends LinkChain {
  readonly end: ChainEnd;
}

/** The chain alone, to be kept: what is known of its end takes three times the memory. */
export function withoutEnd({ path, directories, mounts, links, revision }: LinkChain): LinkChain {
  return { path, directories, mounts, links, revision };
}

/** The chain of a path that changed during every attempt. */
export function unstableChain(path: string): ResolvedChain {
  const nothing = { directories: [], mounts: new Map(), links: '', revision: undefined };
  return { ...nothing, path, end: { kind: 'unstable' } };
}

/**
 * Where a chain leads after a swap: one of its links points to another name in the same directory, as `..data`
 * does, and the rest is assumed to be unchanged. Undefined when no link was retargeted, or in another way.
 */
export function* followSwap(
  chain: LinkChain,
): Effects<{ readonly realPath: string; readonly chain: LinkChain } | undefined> {
  const before = hopsOf(chain);
  const names = chain.path.split('/').reverse();
  const hops = new Map<string, string>();
  let { revision } = chain;
  let here = '';
  let followed = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === '' || name === '.') continue;
    // After a link, `..` does not mean the directory before it; only a complete resolution knows.
    if (name === '..') return undefined;
    const place = `${here}/${name}`;
    const known = before.get(place);
    if (known === undefined) {
      here = place;
      continue;
    }
    // A link that was retargeted to itself: left to the complete resolution, which reports the loop.
    if ((followed += 1) > MAX_LINKS) return undefined;
    const target = yield* call('readlink', place);
    if (target !== known && (target.includes('/') || !isName(target))) return undefined;
    hops.set(place, target);
    if (name === DATA_LINK) revision = target;
    names.push(...target.split('/').reverse());
    if (target.startsWith('/')) here = '';
  }
  const links = linksText(hops);
  return links === chain.links ? undefined : { realPath: here, chain: { ...chain, links, revision } };
}

/** The target of the link at this place; undefined if something else is there. */
export function* linkAt(place: string): Effects<string | undefined> {
  try {
    return yield* call('readlink', place);
  } catch (error) {
    if (isNoLink(error)) return undefined;
    throw error;
  }
}

/**
 * Whether each link on the way still has the same target: then, as far as links decide it, the path leads to the
 * same place.
 */
export function* areLinksUnchanged(chain: LinkChain): Effects<boolean> {
  for (const [place, target] of hopsOf(chain)) {
    if ((yield* linkAt(place)) !== target) return false;
  }
  return true;
}

/** The first chain, with the directories and mounts of the others: for a target that is several files. */
export function mergeChains<W extends LinkChain>(
  first: W,
  others: Iterable<Pick<LinkChain, 'directories' | 'mounts'>>,
): W {
  const all = [first, ...others];
  if (all.length === 1) return first;
  const mounts = new Map(all.flatMap((chain) => [...chain.mounts]));
  return { ...first, directories: mergeDirectories(all), mounts };
}

/** The directories of all chains, each once. */
export function mergeDirectories(chains: Iterable<Pick<LinkChain, 'directories'>>): WatchedDirectory[] {
  const merged = new Map<string, WatchedDirectory>();
  for (const { directories } of chains) {
    for (const directory of directories) {
      const known = merged.get(directory.path);
      merged.set(directory.path, known ? together(known, directory) : directory);
    }
  }
  return [...merged.values()];
}

function together(one: WatchedDirectory, other: WatchedDirectory): WatchedDirectory {
  const { path, identity } = other;
  return one.entries && other.entries
    ? { path, identity, entries: new Set([...one.entries, ...other.entries]) }
    : { path, identity };
}

/** The links followed on the way and their targets, in order. */
export function hopsOf({ links }: Pick<LinkChain, 'links'>): ReadonlyMap<string, string> {
  const hops = new Map<string, string>();
  const texts = links.split('\0');
  for (let at = 1; at < texts.length; at += 2) hops.set(texts[at - 1] ?? '', texts[at] ?? '');
  return hops;
}

/** Whether one of the links is that of a volume, which leads to what is complete. */
export function leadThroughVolume(links: string): boolean {
  return links.includes(`/${DATA_LINK}\0`);
}

/** Those of these links that are not in this directory, as one string. */
export function linksOutside(hops: ReadonlyMap<string, string>, directory: string): string {
  return linksText([...hops].filter(([place]) => dirname(place) !== directory));
}

/** The links as one string. */
export function linksText(hops: Iterable<readonly [place: string, target: string]>): string {
  return [...hops].map((hop) => hop.join('\0')).join('\0');
}

/**
 * The links as one string, after the one at this place was retargeted; undefined if another one was, too. In the callback of
 * a hint, hence one function for both.
 */
export function retargetedLinks(
  links: string,
  retargeted: string,
  target: string,
  calls: Pick<FileSystemCalls, 'readlink'>,
): string | undefined {
  const texts = links.split('\0');
  for (let at = 1; at < texts.length; at += 2) {
    const place = texts[at - 1] ?? '';
    if (place === retargeted) texts[at] = target;
    else if (calls.readlink(place) !== texts[at]) return undefined;
  }
  return texts.join('\0');
}

/**
 * Whether every link but the one at this place has the same target.
 * @param links see `LinkChain.links`.
 */
export function areOtherLinksUnchanged(
  links: string,
  except: string,
  calls: Pick<FileSystemCalls, 'readlink'>,
): boolean {
  return retargetedLinks(links, except, '', calls) !== undefined;
}

/** Whether a component of a path is the name of an entry. */
export function isName(name: string): boolean {
  return name !== '' && name !== '.';
}
