/** The interface of targets, and the results of looks. */
import type { Steps } from '../core/scheduling/steps.js';
import type { Consulted } from './consulted.js';
import type { Disk } from './disk.js';
import type { FileSnapshot, SetSnapshot } from './snapshot.js';
import type { TargetError } from './target-error.js';

/** What was found at a target. While nothing changes, looks return the same object. */
export interface Found {
  readonly kind: 'found';
  readonly snapshot: FileSnapshot | SetSnapshot;
  readonly consulted: Consulted;
  /** Why a part of a tree cannot be read. The files of that part are those last seen. */
  readonly unreadable?: TargetError | undefined;
  /** The volumes in which a key that is missing is published, but has no link yet. */
  readonly unlinked?: ReadonlySet<string> | undefined;
  /** The limit that kept something from being read, in words. */
  readonly limited?: string | undefined;
  /** When the target was published, ns; undefined for files that were published one by one. */
  readonly publishedNs?: bigint | undefined;
  /** See `Regrouped`. */
  readonly isRegrouped?: Regrouped | undefined;
}

/** The result of a look. */
export type Observation =
  | Found
  | ({ readonly consulted: Consulted } & (
      | {
          readonly kind: 'missing';
          /** Whether the target is probably being swapped: a link leads there, or a volume has no revision. */
          readonly isGap: boolean;
          /** When the directory of the missing entry last changed, ns; 0 if unknown. */
          readonly changedNs: bigint;
          readonly isRegrouped?: Regrouped | undefined;
        }
      | { readonly kind: 'unreadable'; readonly error: TargetError; readonly isRegrouped?: undefined }
      /** The target was replaced during every attempt to read it. */
      | { readonly kind: 'unstable' }
    ));

/**
 * Whether calls of `add` or `remove` since the last look decided if the file with this key belongs to the group or
 * tree. Undefined if there was no such call.
 */
export type Regrouped = (key: string) => boolean;

/** How much a look verifies. */
export type Extent =
  /** The entries that hints named. */
  | 'hints'
  /** Links and directories, and the next `VERIFIED_AT_ONCE` files. */
  | 'resync'
  /** Everything. */
  | 'all';

/** `hints` < `resync` < `all`. */
export function wider(one: Extent, other: Extent): Extent {
  if (one === 'all' || other === 'all') return 'all';
  return one === 'resync' ? one : other;
}

/** How many files, and how many directories of a tree, a resync verifies: a few milliseconds. */
export const VERIFIED_AT_ONCE = 500;

/** Something to watch. It remembers what it found, so that a look reads only what has changed. */
export interface Target {
  /** For messages, and the `path` of snapshots. */
  readonly path: string;
  /** The absolute paths. */
  readonly paths: readonly string[];
  look(extent: Extent, disk: Disk): Steps<Observation>;
  /** Tells the next look that something may have happened at this absolute path, or anywhere. */
  touch(path?: string): void;
  /** The same target without anything remembered. */
  fresh(): Target;
  /**
   * From now on, this path belongs to the target; in a tree, with everything below it.
   * @throws {TypeError} if the path cannot belong to the target or already does, or this is neither a group nor a tree.
   */
  add(path: string | URL): void;
  /**
   * From now on, this path does not belong to the target.
   * @throws {TypeError} if the path does not belong to it or is all of it, or this is neither a group nor a tree.
   */
  remove(path: string | URL): void;
}
