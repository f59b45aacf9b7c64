/** What can be observed, and the result of an observation. */
import type { FileSystemCalls } from '../core/file-system.js';
import type { TargetError } from './target-error.js';
import type { ResolvedChain, LinkChain } from './link-chain.js';
import type { FileSnapshot, SetSnapshot } from './snapshot.js';
import type { Ask, Effects } from './effects.js';

/** A file as it was observed. */
export interface SeenFile {
  readonly snapshot: FileSnapshot;
  /**
   * Equal signatures mean equal content, once the signature is older than the resolution of the file system's
   * clock.
   */
  readonly signature: string;
  /** Identifies the file, whatever it contains. */
  readonly inode: string;
  /** Whether its inode was changed after its last write: it was renamed, linked or chmodded when complete. */
  readonly finished: boolean;
  /** Whether it did not change while it was read. */
  readonly steady: boolean;
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
}

/** What was found at the target. */
export interface Found {
  readonly kind: 'found';
  readonly chain: LinkChain;
  readonly snapshot: FileSnapshot | SetSnapshot;
  /** The files by the keys of the snapshot. */
  readonly files: ReadonlyMap<string, SeenFile>;
  /** The signatures of the directories of these files, by real path. */
  readonly directories: ReadonlyMap<string, string>;
  /** Equal signatures: the same files with equal signatures, or the same immutable directory. */
  readonly signature: string;
  /**
   * Whether this is a revision with kubelet's name that was not written into: while links and directories are
   * unchanged, so are the files.
   */
  readonly immutable?: boolean;
  /** Whether the target itself remembers what has to be read again, so that this need not be given to it as known. */
  readonly remembered?: boolean;
  /** Trees only: why part of the tree cannot be read. The files of that part are as last seen. */
  readonly unreadable?: TargetError | undefined;
  /** The limit that left contents out, in words. */
  readonly limited?: string | undefined;
  /** Groups only: what was found at each path. */
  readonly members?: readonly Observation[];
  /** See `Regrouped`. */
  readonly isRegrouped?: Regrouped | undefined;
}

/**
 * Groups and trees only: whether the file with this key belongs to the target since the last time that something was
 * found, or no longer does, because of a call of `add` or `remove`. Undefined: there was none.
 */
export type Regrouped = (key: string) => boolean;

/** The `directories` of a single file. */
export const NO_DIRECTORIES: Found['directories'] = new Map();

/** The result of one check. */
export type Observation =
  | Found
  | {
      readonly kind: 'missing';
      readonly chain: ResolvedChain;
      readonly isRegrouped?: Regrouped | undefined;
    }
  | ({ readonly chain: LinkChain } & (
      | { readonly kind: 'unreadable'; readonly error: TargetError }
      /** The target was replaced during every attempt; check again soon. */
      | { readonly kind: 'unstable' }
      /** The target is behind a mount that may not be entered. */
      | { readonly kind: 'disallowed' }
    ));

/** An observation that says something about the target. */
export type StableObservation = Exclude<Observation, { kind: 'unstable' | 'disallowed' }>;

/** Mounts that may be entered, see `resolveChain`. */
export type AllowedMounts = ReadonlyMap<string, unknown> | undefined;

/** When an observation begins. */
export interface Moment {
  /** Monotonic ms. */
  readonly monotonic: number;
  /**
   * By the clock from which the file systems of the target take their timestamps, epoch ms; undefined if it is not known.
   */
  readonly timestampMs?: number | undefined;
}

/**
 * More files than this are checked in slices only: reading one takes some five calls, so these are one slice. It is also
 * the number of files of a volume that one resync verifies, and of the keys of volumes that resync in the same turn.
 */
export const MAX_FILES_AT_ONCE = 100;

/** More bytes than this are read in slices only: reading them takes a millisecond or two. */
export const MAX_BYTES_AT_ONCE = 2 * 1_048_576;

/** The number of directories, and of files, of a directory or a tree that one resync verifies: a few milliseconds. */
export const VERIFIED_AT_ONCE = 500;

/**
 * A signature represents the content only if the content was read at least this long after the signature was first seen,
 * ms, unless timestamp-proof.ts shows that sooner: two writes within one tick of the file system's clock (2 s on FAT, 1 s on
 * old ext) have equal timestamps.
 */
export const COARSEST_TIMESTAMP_MS = 2_000;

/** What a target holds after a swap: as much as a report takes. */
export interface Swap {
  readonly snapshot: FileSnapshot | SetSnapshot;
  /** The files by the keys of the snapshot. */
  readonly files: ReadonlyMap<string, SeenFile>;
  /** See `LinkChain.links`. */
  readonly links: string;
  /** All of it, for the check that follows. Making it takes about as long as the calls. */
  readonly observation: () => Found;
}

/** A volume, as the watchers of its keys see it: see volume-signature.ts. */
export interface VolumeSignature {
  /** The target of `..data`. */
  readonly revision: string;
  /** Whether kubelet gives such names, so that nobody writes into the revision. */
  readonly isPublished: boolean;
  /** That of the directories of the volume and of the revision; undefined if it does not show every later change. */
  readonly proven: string | undefined;
}

/** What the checks of one turn of the event loop have in common. */
export interface Turn {
  /** Asks the disk for what others may have asked. */
  readonly ask: Ask;
  /** The number of turns over which the files of published revisions are examined, some in each. */
  readonly slices: number;
  /** See `volumeSignature`. */
  volume(link: string, timestampMs: number | undefined, calls: FileSystemCalls): VolumeSignature;
}

/** Reads a target right after a swap; a whole check has to follow. */
export interface SwapReader {
  /** The link that a swap retargets. */
  readonly place: string;
  /** Whether an event about this absolute path can matter to the target, as it was observed. */
  concerns(path: string): boolean;
  /**
   * What the target holds after a swap; undefined when there was none, or in any unusual case.
   * @param isRehearsal reads even if there was none.
   */
  read(calls: FileSystemCalls, isRehearsal?: boolean): Swap | undefined;
  /**
   * Whether links and signatures are as they were observed, as `Target.isUnchanged`; undefined if this cannot tell.
   * Throws what the calls throw.
   * @param timestampMs see `Moment`.
   */
  isUnchanged(calls: FileSystemCalls, turn: Turn, timestampMs: number | undefined): boolean | undefined;
}

/** A file in whose place another one was found, and read. */
export interface Replacement {
  readonly key: string;
  readonly file: SeenFile;
}

/** Something that can be observed. */
export interface Target {
  /** For messages, and the `path` of snapshots. */
  readonly path: string;
  /**
   * Observes the target.
   * @param known the result of an earlier check whose signatures are trusted: unchanged files are not read again.
   */
  observe(known?: Found, allowedMounts?: AllowedMounts, now?: Moment): Effects<Observation>;
  /**
   * Checks only whether a link was retargeted, and if so reads what it leads to, so that a swap is reported after a
   * few calls. Undefined when no link was, or when anything is unusual, such as more than `MAX_FILES_AT_ONCE`
   * files. A complete check must follow in any case, for other changes and for the directories to watch.
   * @param allowedMounts a target behind another mount counts as unusual.
   */
  observeSwap(last: Found, allowedMounts?: AllowedMounts): Effects<Found | undefined>;
  /** The same in the fewest calls, where that is possible, prepared for the next swap. */
  swapReader?(found: Found): SwapReader | undefined;
  /**
   * Reads the file at this path if it has replaced another one: that of a path, or one of a directory or a tree. Undefined
   * if it has not, or in any unusual case. Only the hints that follow show whether the file is complete.
   */
  readReplacement?(path: string, calls: FileSystemCalls): Replacement | undefined;
  /**
   * Whether links and signatures are unchanged. Does not notice a path that leads to the same files in another way.
   * With many files, each call checks only the next few, so that its cost does not grow with their number:
   * `MAX_FILES_AT_ONCE` of a volume, `VERIFIED_AT_ONCE` of a directory or a tree. A difference is noted as by `touch`:
   * the target has changed until it is observed.
   */
  isUnchanged(last: Found): Effects<boolean>;
  /**
   * Notes that something may have happened at this absolute path, or anywhere. A target that has this method may
   * check only the noted paths in `observe`, and checks everything the first time and after a failure.
   */
  touch?(path?: string): void;
  /** Resolves the path without reading any file. */
  resolve(allowedMounts?: AllowedMounts): Effects<ResolvedChain>;
  /** The same target, for a separate observation. */
  fresh(): Target;
  /**
   * Groups and trees only: from now on this path belongs to the target, in a tree with everything below it.
   * @throws {TypeError} for a path that it cannot have, or has already.
   */
  add?(path: string | URL): void;
  /**
   * Groups and trees only: from now on this path does not belong to the target.
   * @throws {TypeError} for a path that it does not have, or that it consists of.
   */
  remove?(path: string | URL): void;
}

/** Limits of what is read. */
export interface ReadLimits {
  /** The maximum size of one file, bytes. */
  readonly maxContentBytes: number;
  /** The maximum size of all files together, bytes. */
  readonly maxTotalBytes: number;
  /** If there are more files than this, contents are not read. */
  readonly maxFiles: number;
}
