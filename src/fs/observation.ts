/** What can be observed, and what one observation finds. */
import type { FileSystemCalls } from '../core/file-system.js';
import type { TargetError } from '../core/errors.js';
import type { LinkChain } from './link-chain.js';
import type { FileSnapshot, SetSnapshot } from './snapshot.js';
import type { Effects } from './effects.js';

/** A file, and whether it was whole when it was read. */
export interface SeenFile {
  readonly snapshot: FileSnapshot;
  /** Equal signatures mean equal content, once the signature is older than the clock that stamps it is coarse. */
  readonly signature: string;
  /** Which file it is, whatever is in it. */
  readonly inode: string;
  /** Its inode was changed after its last byte was written: it was renamed, linked or chmodded when complete. */
  readonly finished: boolean;
  /** It did not change while it was read. */
  readonly steady: boolean;
  /** The links that led to it, see `LinkChain.links`. */
  readonly links: string;
}

/** What is at the target. */
export interface Found {
  readonly kind: 'found';
  readonly chain: LinkChain;
  readonly snapshot: FileSnapshot | SetSnapshot;
  /** The files by the snapshot's keys. */
  readonly files: ReadonlyMap<string, SeenFile>;
  /** The signatures of the directories whose entries these are, by real path. */
  readonly directories: ReadonlyMap<string, string>;
  /** Equal signatures: the same files with equal signatures, or the same immutable directory. */
  readonly signature: string;
  /**
   * A revision with kubelet's name that was not written into: while links and directories are as they were, so are the
   * files.
   */
  readonly immutable?: boolean;
  /** Only what was touched was checked; the rest is as it was found before. */
  readonly partial?: boolean;
  /** Of a tree: why part of it cannot be read. The files of that part are those that were last seen there. */
  readonly unreadable?: TargetError | undefined;
  /** Which limit left contents out, in words. */
  readonly limited?: string | undefined;
  /** Of a group: what is at each of its paths. */
  readonly members?: readonly Observation[];
}

/** What one check found. */
export type Observation =
  | Found
  | ({ readonly chain: LinkChain } & (
      | { readonly kind: 'missing' }
      | { readonly kind: 'unreadable'; readonly error: TargetError }
      /** It was replaced during every attempt; check again soon. */
      | { readonly kind: 'unstable' }
      /** It lies behind a mount that may not be entered. */
      | { readonly kind: 'disallowed' }
    ));

/** Mounts that may be entered, see `resolveChain`. */
export type AllowedMounts = ReadonlyMap<string, unknown> | undefined;

/** More files than this are checked in slices only. Reading one takes some five calls, so these are one slice. */
export const MAX_FILES_AT_ONCE = 100;

/** More bytes than this are read in slices only: reading them takes a millisecond or two. */
export const MAX_BYTES_AT_ONCE = 2 * 1_048_576;

/** Reads a target right after a swap; a whole check has to follow. */
export interface SwapReader {
  /** The link that a swap retargets. */
  readonly place: string;
  /** Whether an event about this absolute path can matter to the target, as it was observed. */
  concerns(path: string): boolean;
  /** What the target holds after a swap; undefined when there was none, or in any unusual case. */
  read(calls: FileSystemCalls): Found | undefined;
}

/** Something that can be observed. */
export interface Target {
  /** For messages, and the `path` of snapshots. */
  readonly path: string;
  /**
   * What is there.
   * @param known what an earlier check found, when its signatures can be trusted: then what is unchanged is not read.
   */
  observe(known?: Found, allowedMounts?: AllowedMounts): Effects<Observation>;
  /**
   * Checks only whether a link was retargeted, and if so reads what it leads to: a swap can be reported after a few
   * calls. Undefined when none was, or when anything is unusual, such as more than `MAX_FILES_AT_ONCE` files. A whole
   * check must follow in any case, for other changes and for the directories to watch.
   * @param allowedMounts what is there is unusual if it leads through another mount.
   */
  observeSwap(last: Found, allowedMounts?: AllowedMounts): Effects<Found | undefined>;
  /** The same in the fewest calls, where that is possible, prepared for the next swap. */
  swapReader?(found: Found): SwapReader | undefined;
  /**
   * Whether links and signatures are as they were. It cannot tell a path laid anew to the very same files. Of more than
   * `MAX_FILES_AT_ONCE` files each call checks only the next few: what it costs does not grow with what is there.
   */
  isUnchanged(last: Found): Effects<boolean>;
  /** Something may have happened at this absolute path, or anywhere. `observe` may then check only what was touched. */
  touch?(path?: string): void;
  /** What the path means, without reading any file. */
  resolve(allowedMounts?: AllowedMounts): Effects<LinkChain>;
}

/** How much of what is found is read. */
export interface ReadLimits {
  /** Of one file, bytes. */
  readonly maxContentBytes: number;
  /** Of all files together, bytes. */
  readonly maxTotalBytes: number;
  /** With more files than this none is read. */
  readonly maxFiles: number;
}
