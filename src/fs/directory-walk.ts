/**
 * A walk through directories and what is below them: what both parts of a tree have in common (tree-walk.ts).
 *
 * A volume shows its keys: names that begin with two dots are left out, also between two revisions.
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { errnoOf, hasMoved, isExhausted } from '../core/errno.js';
import { within } from './absolute-path.js';
import { call, PAUSE, type Effects } from './effects.js';
import { identityOf } from './file-identity.js';
import { listDirectory } from './list-directory.js';
import {
  PartDraft,
  treeFileAt,
  type DisallowedMount,
  type NoTree,
  type TreeDirectory,
  type TreePart,
} from './tree-part.js';
import type { TreeScope } from './tree-scope.js';
import { DATA_LINK, isRevisionName, isUserVisible } from './volume-layout.js';

/** Options of a walk. */
export interface TreeWalkOptions {
  readonly scope: TreeScope;
  /** Whether links to directories are followed; links to files, and those of a volume, always are. */
  readonly followLinks: boolean;
  /** File systems that may be entered, see `resolveChain`; undefined means all. */
  readonly allowedMounts?: ReadonlyMap<string, unknown> | undefined;
  /** Whether only directories are wanted. */
  readonly skipFiles?: boolean;
}

/** An entry of a directory. */
export interface Entry {
  readonly key: string;
  readonly path: string;
  readonly stat: BigIntStats;
}

/** Ends a walk early. */
export class EarlyEnd extends Error {
  readonly observation: NoTree | DisallowedMount;

  constructor(observation: NoTree | DisallowedMount) {
    super('The walk has ended');
    this.observation = observation;
  }
}

/** Visits directories, and records what it finds in one part of the tree. */
export abstract class DirectoryWalk {
  protected readonly root: string;
  protected readonly options: TreeWalkOptions;
  protected readonly part: PartDraft;
  readonly #linked: boolean;

  /** @param linked see `TreeDirectory.linked`. */
  constructor(root: string, options: TreeWalkOptions, linked: boolean, previous: TreePart | undefined) {
    this.root = root;
    this.options = options;
    this.part = new PartDraft(previous);
    this.#linked = linked;
  }

  /** Whether to list a directory; called each time one is found. */
  protected abstract enters(directory: Entry, identity: string): boolean;

  protected abstract onLink(key: string, path: string): void;

  /** A file system begins here, and may be entered. */
  protected abstract onMount(key: string, path: string, identity: string): void;

  protected onListed?(directory: Entry): void;

  /**
   * Whether an entry need not be visited, because it is known and is still there.
   * @param siblings the number of entries of its directory.
   */
  protected isKnown?(key: string, entry: Dirent, siblings: number): boolean;

  /** Whether a directory need not be entered. */
  protected isUnchanged?(found: Entry): boolean;

  /** Lists directories, and those in them. */
  protected *list(directories: Entry[]): Effects<void> {
    for (let next = directories.pop(); next; next = directories.pop()) {
      const { key, path, stat } = next;
      const identity = identityOf(stat);
      if (!this.enters(next, identity)) continue;
      const entries = yield* this.#entriesOf(next);
      if (!entries) continue;
      const known = this.part.directories.get(key);
      const isVolume = isVolumeNow(entries, known?.identity === identity ? known : undefined);
      this.part.directories.set(key, { path, identity, linked: this.#linked, isVolume });
      this.onListed?.(next);
      for (const entry of entries) {
        if (isVolume && !isUserVisible(entry.name)) continue;
        const inner = key === '' ? entry.name : `${key}/${entry.name}`;
        if (this.options.scope.leavesOut(inner)) continue;
        if (this.isKnown?.(inner, entry, entries.length) === true) {
          yield PAUSE;
          continue;
        }
        const place = within(path, entry.name);
        if (entry.isSymbolicLink()) this.onLink(inner, place);
        if (!entry.isDirectory() && !(entry.isFile() && this.options.skipFiles !== true)) continue;
        const status = yield* this.statAt(inner, place);
        if (!status) continue;
        const found = { key: inner, path: place, stat: status };
        if (this.isUnchanged?.(found) !== true) this.sort(found, identity, directories);
      }
    }
  }

  /**
   * Adds a file to the part, and a directory to those that are to be listed.
   * @param above the identity of the parent directory.
   */
  protected sort(entry: Entry, above: string, directories: Entry[]): void {
    const { key, path, stat } = entry;
    if (!stat.isDirectory() && !stat.isFile()) return;
    if (!above.startsWith(`${stat.dev}:`)) {
      const identity = identityOf(stat);
      this.assertAllowed(identity, path);
      this.onMount(key, path, identity);
    }
    if (stat.isDirectory()) directories.push(entry);
    else this.addFile(entry, '');
  }

  protected addFile({ key, path, stat }: Entry, links: string): void {
    if (this.options.scope.includes(key))
      this.part.files.set(key, treeFileAt(path, links, stat, this.part.files.get(key)));
  }

  protected assertAllowed(identity: string, path: string): void {
    const { allowedMounts } = this.options;
    if (allowedMounts && !allowedMounts.has(identity)) throw this.disallowed(path);
  }

  protected disallowed(path: string): EarlyEnd {
    return new EarlyEnd({ kind: 'disallowed', root: this.root, path });
  }

  /** Undefined if it has vanished, or cannot be read. */
  protected *statAt(key: string, path: string): Effects<BigIntStats | undefined> {
    try {
      return yield* call('lstat', path);
    } catch (error) {
      this.#failed(key, error);
      return undefined;
    }
  }

  *#entriesOf({ key, path, stat }: Entry): Effects<Dirent[] | undefined> {
    try {
      return yield* listDirectory(path, stat);
    } catch (error) {
      const errno = this.#failed(key, error);
      if (isExhausted(error)) throw new EarlyEnd({ kind: 'unreadable', root: path, errno });
      return undefined;
    }
  }

  /** A call failed here. Without its root there is no tree; anything else is left out. */
  #failed(key: string, error: unknown): string {
    const errno = errnoOf(error);
    if (errno === undefined) throw error;
    if (key === '') throw this.noTree(errno);
    if (!hasMoved(error)) this.part.unreadable.set(key, errno);
    return errno;
  }

  protected noTree(errno: string): EarlyEnd {
    const kind = errno === 'ENOENT' || errno === 'ESTALE' ? 'missing' : 'unreadable';
    return new EarlyEnd({ kind: errno === 'ENOTDIR' ? 'not-directory' : kind, root: this.root, errno });
  }
}

/**
 * Between two revisions a volume has no `..data`, but it still has names that are not for its users.
 * @param known the same directory when it was last listed.
 */
function isVolumeNow(entries: readonly Dirent[], known: TreeDirectory | undefined): boolean {
  if (entries.some(({ name }) => name === DATA_LINK)) return entries.some(isDataLink);
  const wasVolume = known?.isVolume === true;
  return entries.some((entry) => (wasVolume && !isUserVisible(entry.name)) || isRevision(entry));
}

function isDataLink(entry: Dirent): boolean {
  return entry.name === DATA_LINK && entry.isSymbolicLink();
}

function isRevision(entry: Dirent): boolean {
  return isRevisionName(entry.name) && entry.isDirectory();
}
