/**
 * Resolves a path, and records every directory consulted and every link followed.
 *
 * An ancestor that may not be read is opaque (`node --permission`, Deno's `--allow-read` and AppArmor may allow a
 * volume, but not the directories above it): resolution continues below it, and only the resync finds that it was
 * renamed. When nothing below it may be read either, the path is unreadable.
 */
import type { BigIntStats } from 'node:fs';
import { basename, dirname } from 'node:path';

import { errnoOf, isDenied } from '../core/errno.js';
import { MAX_LINKS } from '../core/file-system.js';
import type { WatchedDirectory } from '../core/watch-backend.js';
import { within } from './absolute-path.js';
import type { Effects } from './effects.js';
import { identityOf } from './file-identity.js';
import { isName, linkAt, linksText, unstableChain, type ChainEnd, type ResolvedChain } from './link-chain.js';
import { shared } from './shared-directories.js';
import { readingError, targetError, type TargetError } from './target-error.js';
import { DATA_LINK, isRevisionName } from './volume-layout.js';

/**
 * How often a path that changes during resolution is resolved again. A swap takes microseconds, so even thousands
 * of swaps a second leave most attempts undisturbed.
 */
const MAX_WALKS = 20;

/**
 * Resolves an absolute path. A failure counts only when two attempts in a row meet the same one: between reading a
 * link and entering its target, a swap may have removed the target.
 *
 * @param allowedMounts mounts (by identity) that may be entered; undefined means all.
 */
export function* resolveChain(
  path: string,
  allowedMounts?: ReadonlyMap<string, unknown>,
): Effects<ResolvedChain> {
  let failed: ResolvedChain | undefined;
  for (let walk = 0; walk < MAX_WALKS; walk += 1) {
    const chain = yield* new Walk(path, allowedMounts).run();
    const { kind } = chain.end;
    if (kind === 'found' || kind === 'disallowed') return chain;
    if (kind === 'unstable') continue;
    if (chain.links === '' || (failed && sameFailure(failed, chain))) return chain;
    failed = chain;
  }
  return unstableChain(path);
}

function sameFailure(a: ResolvedChain, b: ResolvedChain): boolean {
  const place = ({ end }: ResolvedChain): string =>
    end.kind === 'missing'
      ? end.path
      : end.kind === 'unreadable'
        ? `${end.error.code} ${end.error.path}`
        : end.kind;
  return a.links === b.links && place(a) === place(b);
}

/** A directory on the way, with the names that were looked up in it. */
interface Consulted {
  readonly path: string;
  readonly stat: BigIntStats;
  readonly entries: Set<string>;
  /** Whether it holds a link of the chain or its end. */
  holds: boolean;
}

class Walk {
  readonly #path: string;
  readonly #allowedMounts: ReadonlyMap<string, unknown> | undefined;
  readonly #consulted = new Map<string, Consulted>();
  readonly #mounts = new Map<string, string>();
  readonly #hops = new Map<string, string>();
  /** The directories of the revisions entered, each with a trailing slash. */
  readonly #revisions: string[] = [];
  /** The first directory since the last success that may not be read. */
  #opaque: { readonly path: string; readonly cause: unknown } | undefined;
  #followed = 0;
  #revision: string | undefined;

  constructor(path: string, allowedMounts: ReadonlyMap<string, unknown> | undefined) {
    this.#path = path;
    this.#allowedMounts = allowedMounts;
  }

  *run(): Effects<ResolvedChain> {
    const end = yield* this.#walk();
    return {
      path: this.#path,
      ...shared(this.#directories(), this.#mounts),
      links: linksText(this.#hops),
      revision: this.#revision,
      end,
    };
  }

  *#walk(): Effects<ChainEnd> {
    /** Names still to be looked up, the next one last. */
    const names = this.#path.split('/').reverse();
    const root = '/';
    let here = root;
    let place = root;
    try {
      const rootStat = yield* this.#lstat(root);
      if (rootStat && !this.#enter(rootStat, undefined, root)) return { kind: 'disallowed' };
      const top = rootStat && this.#consult(root, rootStat);
      /** Undefined if it is opaque. */
      let directory = top;
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        if (name === '' || name === '.') continue;
        if (name === '..') {
          here = dirname(here);
          directory = this.#consulted.get(here);
          continue;
        }
        place = within(here, name);
        directory?.entries.add(name);
        const entry = yield* this.#lstat(place);
        if (!entry) {
          here = place;
          directory = undefined;
          continue;
        }
        if (!this.#passOpaque()) return { kind: 'disallowed' };
        if (entry.isSymbolicLink()) {
          if (directory) directory.holds = true;
          if ((this.#followed += 1) > MAX_LINKS) return unreadable('ERR_TARGET_LOOP', place);
          const target = yield* linkAt(place);
          // It was replaced since.
          if (target === undefined) return { kind: 'unstable' };
          this.#follow(place, target);
          names.push(...target.split('/').reverse());
          if (target.startsWith('/')) {
            here = root;
            directory = top;
          }
          continue;
        }
        if (!names.some(isName)) return this.#foundIn(directory, place, entry);
        if (!entry.isDirectory()) return unreadable('ERR_TARGET_NOT_DIRECTORY', place);
        if (!this.#enter(entry, directory?.stat, place)) return { kind: 'disallowed' };
        here = place;
        directory = this.#consult(here, entry);
      }
      if (directory) return { kind: 'found', path: here, stat: directory.stat };
      const { path, cause } = this.#opaque ?? { path: here, cause: undefined };
      return unreadable('ERR_TARGET_ACCESS', path, cause);
    } catch (error) {
      if (!this.#passOpaque()) return { kind: 'disallowed' };
      return endOf(place, error);
    }
  }

  /** The end of the path, in this directory; undefined: in one that may not be read. */
  #foundIn(directory: Consulted | undefined, path: string, stat: BigIntStats): ChainEnd {
    if (directory) {
      directory.holds = true;
      // The target may be a mount point itself: a volume, or a file that is mounted alone.
      if (!this.#enter(stat, directory.stat, path)) return { kind: 'disallowed' };
    }
    return { kind: 'found', path, stat };
  }

  /** Undefined when it may not be read. */
  *#lstat(path: string): Effects<BigIntStats | undefined> {
    try {
      // Yielded directly, since this is done for each component of every path.
      return (yield ['lstat', path]) as BigIntStats;
    } catch (error) {
      if (!isDenied(error)) throw error;
      this.#opaque ??= { path, cause: error };
      return undefined;
    }
  }

  /**
   * Handles success below an opaque directory. The file systems that lead there are unknown, so it counts as
   * remote. Returns false when it must not be entered.
   */
  #passOpaque(): boolean {
    if (!this.#opaque) return true;
    const identity = `opaque:${this.#opaque.path}`;
    this.#mounts.set(identity, this.#opaque.path);
    this.#opaque = undefined;
    return this.#allowedMounts === undefined || this.#allowedMounts.has(identity);
  }

  #follow(place: string, target: string): void {
    this.#hops.set(place, target);
    if (basename(place) !== DATA_LINK) return;
    this.#revision = target;
    if (isRevisionName(target)) this.#revisions.push(`${within(dirname(place), target)}/`);
  }

  #consult(path: string, stat: BigIntStats): Consulted {
    const known = this.#consulted.get(path);
    if (known) return known;
    const consulted: Consulted = { path, stat, entries: new Set(), holds: false };
    this.#consulted.set(path, consulted);
    return consulted;
  }

  /** Records where a file system begins; false when it must not be entered. */
  #enter(stat: BigIntStats, parent: BigIntStats | undefined, path: string): boolean {
    if (parent?.dev === stat.dev) return true;
    const identity = identityOf(stat);
    this.#mounts.set(identity, path);
    return this.#allowedMounts === undefined || this.#allowedMounts.has(identity);
  }

  /**
   * Revisions are left out: they never change after publication, their removal is an event of the volume, and each
   * would cost an inotify watch that moves with every swap.
   */
  #directories(): WatchedDirectory[] {
    const watched: WatchedDirectory[] = [];
    const last = [...this.#consulted.keys()].at(-1);
    for (const { path, stat, entries, holds } of this.#consulted.values()) {
      // Nobody can rename the root, and renaming a child of it causes an event of the child: of the root only links
      // and the missing entry matter.
      if (path === '/' && !holds && path !== last) continue;
      if (this.#revisions.some((revision) => `${path}/`.startsWith(revision))) continue;
      const identity = identityOf(stat);
      watched.push(holds ? { path, identity } : { path, identity, entries });
    }
    return watched;
  }
}

/** The end of a resolution whose call at this path failed. */
function endOf(place: string, error: unknown): ChainEnd {
  switch (errnoOf(error)) {
    case 'ENOENT':
    case 'ESTALE':
      return { kind: 'missing', path: place };
    case 'ENOTDIR':
      return unreadable('ERR_TARGET_NOT_DIRECTORY', place, error);
    case 'ELOOP':
      return unreadable('ERR_TARGET_LOOP', place, error);
    case undefined:
      throw error;
    default:
      return { kind: 'unreadable', error: readingError(place, error) };
  }
}

function unreadable(code: TargetError['code'], path: string, cause?: unknown): ChainEnd {
  return { kind: 'unreadable', error: targetError(code, path, cause) };
}
