/** The states of a target, as reported to users. */

import { inspect } from '../core/ports/builtins.js';
import { SLASH } from '../core/ports/platform-path.js';
import { isUnchanged, NOT_READ, type Inode } from './file-identity.js';
import type { Kept } from './read-limits.js';

/** The digest of a file's bytes. */
export function digestOf(content: Uint8Array): string {
  return `sha256:${sha256(content)}`;
}

/** How a file was found, for later looks. */
export interface FileStamp {
  readonly inode: Inode;
  /** Since when the inode has looked like this, monotonic ms. */
  readonly since: number;
  /** Whether every change since it was last read shows in the inode. */
  timestampsAreReliable: boolean;
  /** The links that were followed to it, see `Way.links`. */
  readonly links: string;
  /** The volume that these links lead through, see `Way.volume`: what it contains comes from one revision. */
  readonly volume: string | undefined;
  /** Whether the file did not change while it was read. */
  readonly isSteady: boolean;
  /** Whether its last write came before the last of these links was retargeted. */
  readonly isOlderThanLinks: boolean;
  /** Whether its last write came before it was renamed or linked to its place. */
  readonly isRenamed: boolean;
  /** Whether reading it failed, so that its content is still to be reported. */
  readonly hasFailed: boolean;
}

type FileSnapshotFields = Pick<
  FileSnapshot,
  'path' | 'realPath' | 'revision' | 'content' | 'size' | 'mode'
> & {
  /** Needed if the content is not kept; otherwise it is computed on demand. */
  readonly digest?: string | undefined;
  readonly stamp: FileStamp;
};

/** A file as it was at one instant. Its printed forms (`inspect`, JSON) omit the content. */
export class FileSnapshot {
  readonly kind = 'file';
  /** The path that is watched, absolute. */
  readonly path: string;
  /** The path that it was read from, every link resolved. */
  readonly realPath: string;
  /** The revision that it was read from: the target of `..data`. Undefined outside a volume. */
  readonly revision: string | undefined;
  /** Size in bytes. */
  readonly size: number;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  readonly #bytes: Buffer | undefined;
  readonly #stamp: FileStamp;
  #files: Files | undefined;
  #digest: string | undefined;

  /** @internal Snapshots are created by looks. */
  constructor(fields: FileSnapshotFields) {
    this.path = fields.path;
    this.realPath = fields.realPath;
    this.revision = fields.revision;
    this.#bytes = fields.content;
    this.size = fields.size;
    this.mode = fields.mode;
    this.#digest = fields.digest;
    this.#stamp = fields.stamp;
  }

  /**
   * A copy of its bytes, made on each access, so that a caller may change it; undefined if the file is larger than
   * `maxContentBytes`.
   */
  get content(): Buffer | undefined {
    return this.#bytes && Buffer.from(this.#bytes);
  }

  /** The bytes themselves, for callers that neither change them nor pass them on. */
  static bytesOf(snapshot: FileSnapshot): Buffer | undefined {
    return snapshot.#bytes;
  }

  static stampOf(snapshot: FileSnapshot): FileStamp {
    return snapshot.#stamp;
  }

  static keptOf(snapshot: FileSnapshot): Kept {
    if (snapshot.#bytes) return 'contents';
    return snapshot.#isRead ? 'digests' : 'identities';
  }

  get #isRead(): boolean {
    return this.#bytes !== undefined || !this.digest.startsWith(NOT_READ);
  }

  /** Whether the contents are equal. Digests are computed only if the bytes are not kept. */
  static readonly haveSameContent = (one: FileSnapshot, other: FileSnapshot): boolean => {
    if (one.#bytes && other.#bytes) return one.#bytes === other.#bytes || one.#bytes.equals(other.#bytes);
    // If only one of them was read, inode and timestamps are all that can be compared.
    if (one.#isRead === other.#isRead) return one.digest === other.digest;
    if (one.#stamp.hasFailed || other.#stamp.hasFailed) return false;
    // What changed while it was read has the stamp of a later content.
    if (!one.#stamp.isSteady || !other.#stamp.isSteady) return false;
    return isUnchanged(one.#stamp.inode, other.#stamp.inode);
  };

  /**
   * `sha256:…` of the content; `stat:…` of the inode and timestamps where it was not read. Equal digests mean equal
   * contents.
   */
  get digest(): string {
    this.#digest ??= this.#bytes ? digestOf(this.#bytes) : '';
    return this.#digest;
  }

  /** A map with this file as the only entry, under the last name of its path. */
  get files(): ReadonlyMap<string, FileSnapshot> {
    return (this.#files ??= new Map([[this.path.slice(this.path.lastIndexOf(SLASH) + 1), this]]));
  }

  /** The same file, of which only the digest is kept. */
  withoutContent(): FileSnapshot {
    const { path, realPath, revision, digest, size, mode } = this;
    const [content, stamp] = [undefined, this.#stamp];
    return new FileSnapshot({ path, realPath, revision, content, digest, size, mode, stamp });
  }

  toJSON(): Record<string, unknown> {
    const { kind, path, realPath, revision, digest, size, mode } = this;
    return { kind, path, realPath, revision, digest, size, mode };
  }

  [inspect.custom](): Record<string, unknown> {
    return this.toJSON();
  }
}

/** Files by key. */
export type Files = ReadonlyMap<string, FileSnapshot>;

export const NO_FILES: Files = new Map();

/** Nothing exists at the path. */
export class MissingSnapshot {
  readonly kind = 'missing';
  /** The path that is watched, absolute. */
  readonly path: string;
  readonly content = undefined;
  readonly revision = undefined;
  readonly digest = 'missing';
  readonly files: ReadonlyMap<string, FileSnapshot> = NO_FILES;

  constructor(path: string) {
    this.path = path;
  }
}

/** The kind of a set of files. */
export type SetKind =
  /** A directory with a `..data` link: all files come from one revision. */
  | 'volume'
  /** Any other directory, with the files directly in it. */
  | 'directory'
  /** The files at several paths. */
  | 'group'
  /** A directory with everything below it. */
  | 'tree';

type SetSnapshotFields = Pick<SetSnapshot, 'kind' | 'path' | 'realPath' | 'revision' | 'files'>;

/**
 * Several files. Those of a volume or a group come from one instant; in a directory or a tree, each file is complete by
 * itself. Its printed forms omit the contents.
 */
export class SetSnapshot {
  readonly kind: SetKind;
  /** The watched path, absolute; for a group, all paths. */
  readonly path: string;
  /** The path of the directory, every link resolved. */
  readonly realPath: string;
  /** The revision of a volume. */
  readonly revision: string | undefined;
  /** The files by key: the path in the directory (`conf.d/app.yaml`), or in a group the path as it was given. */
  readonly files: ReadonlyMap<string, FileSnapshot>;
  readonly content = undefined;
  #digest: string | undefined;

  /** @internal Snapshots are made by looks. */
  constructor(fields: SetSnapshotFields) {
    this.kind = fields.kind;
    this.path = fields.path;
    this.realPath = fields.realPath;
    this.revision = fields.revision;
    this.files = fields.files;
  }

  /** Equal digests mean the same keys with equal contents. */
  get digest(): string {
    this.#digest ??= `set:${sha256(JSON.stringify([...this.files].map(([key, { digest }]) => [key, digest]).sort()))}`;
    return this.#digest;
  }

  toJSON(): Record<string, unknown> {
    const { kind, path, realPath, revision, digest } = this;
    const files = [...this.files].map(([key, file]) => [
      key,
      { digest: file.digest, mode: file.mode, size: file.size },
    ]);
    return { kind, path, realPath, revision, digest, files: Object.fromEntries(files) };
  }

  [inspect.custom](): Record<string, unknown> {
    return this.toJSON();
  }
}

/** The state of a target; `kind` is the discriminant. */
export type Snapshot = FileSnapshot | SetSnapshot | MissingSnapshot;

/**
 * The SHA-256 digest of the data, in hexadecimal. `node:crypto` is loaded on the first call, because loading it takes
 * longer than loading any of the packages used here.
 */
export function sha256(data: string | Uint8Array): string {
  return process.getBuiltinModule('node:crypto').hash('sha256', data, 'hex');
}
