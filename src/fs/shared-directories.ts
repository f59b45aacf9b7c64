import type { WatchedDirectory } from '../core/watch-backend.js';
import type { LinkChain } from './link-chain.js';

type Surroundings = Pick<LinkChain, 'directories' | 'mounts'>;

/** The directories and mounts of the last chain. */
let last: Surroundings = { directories: [], mounts: new Map() };

/**
 * The directories and the mounts of a chain. Those of all watchers of one volume are equal, and the watchers resolve their
 * paths one after another, so they share one object in memory.
 */
export function shared(directories: LinkChain['directories'], mounts: LinkChain['mounts']): Surroundings {
  if (!areSame(directories, last.directories) || !haveSameEntries(mounts, last.mounts)) {
    last = { directories, mounts };
  }
  return last;
}

/** The path that was shared last. */
let link = '';

/** The path of the `..data` link of a volume, which is one string in memory for all its keys. */
export function sharedLink(path: string): string {
  if (path !== link) link = path;
  return link;
}

function areSame(some: readonly WatchedDirectory[], others: readonly WatchedDirectory[]): boolean {
  return some.length === others.length && some.every((one, index) => isSame(one, others[index]));
}

function isSame({ path, identity, entries }: WatchedDirectory, other: WatchedDirectory | undefined): boolean {
  if (other?.path !== path || other.identity !== identity) return false;
  if (!entries || !other.entries) return entries === other.entries;
  if (entries.size !== other.entries.size) return false;
  for (const entry of entries) if (!other.entries.has(entry)) return false;
  return true;
}

function haveSameEntries(one: LinkChain['mounts'], other: LinkChain['mounts']): boolean {
  if (one.size !== other.size) return false;
  for (const [identity, path] of one) if (other.get(identity) !== path) return false;
  return true;
}
