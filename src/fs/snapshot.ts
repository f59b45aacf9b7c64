/** What a target is at one instant. */
import { basename } from 'node:path';
import { inspect } from 'node:util';

import { sha256 } from '../core/digest.js';

/** One file in a snapshot. */
export interface FileState {
  /** A copy of its bytes, made on each access; undefined when they are not kept, see `digest`. */
  readonly content: Buffer | undefined;
  /**
   * `sha256:…` of the content; `stat:…` of the inode and timestamps where it was not read. Equal digests mean equal
   * contents.
   */
  readonly digest: string;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  /** Size in bytes. */
  readonly size: number;
}

/** The digest of a file's bytes. */
export function digestOf(content: Uint8Array): string {
  return `sha256:${sha256(content)}`;
}

interface FileSnapshotFields {
  readonly path: string;
  readonly realPath: string;
  readonly revision: string | undefined;
  readonly content: Buffer | undefined;
  /** Needed if the content is not kept; otherwise it is made when somebody asks for it. */
  readonly digest?: string | undefined;
  readonly size: number;
  readonly mode: number;
}

/** A file as it was at one instant. Its printed forms (`inspect`, JSON) omit the content. */
export class FileSnapshot implements FileState {
  readonly kind = 'file';
  /** The path that is watched, absolute. */
  readonly path: string;
  /** The path it was read from, every link resolved. */
  readonly realPath: string;
  /** The revision it was read from: what `..data` pointed to. Undefined outside a volume. */
  readonly revision: string | undefined;
  /** Size in bytes. */
  readonly size: number;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  readonly #bytes: Buffer | undefined;
  #digest: string | undefined;

  constructor(fields: FileSnapshotFields) {
    this.path = fields.path;
    this.realPath = fields.realPath;
    this.revision = fields.revision;
    this.#bytes = fields.content;
    this.size = fields.size;
    this.mode = fields.mode;
    this.#digest = fields.digest;
  }

  /**
   * A copy of its bytes, made on each access, so that a caller may change it; undefined when the file is larger
   * than `maxContentBytes`.
   */
  get content(): Buffer | undefined {
    if (!this.#bytes) return undefined;
    // `Buffer.from` takes three times as long when it is called as rarely as this.
    const copy = Buffer.allocUnsafe(this.#bytes.length);
    copy.set(this.#bytes);
    return copy;
  }

  /** The bytes themselves, for callers that do not pass them on. */
  static bytesOf(snapshot: FileSnapshot): Buffer | undefined {
    return snapshot.#bytes;
  }

  /**
   * `sha256:…` of the content; `stat:…` of the inode and timestamps where it was not read. Equal digests mean equal
   * contents.
   */
  get digest(): string {
    // On demand: hashing would take a tenth of the time from a swap to its report.
    this.#digest ??= this.#bytes ? digestOf(this.#bytes) : '';
    return this.#digest;
  }

  /** Itself, under the last name of its path. */
  get files(): ReadonlyMap<string, FileState> {
    return new Map([[basename(this.path), this]]);
  }

  /** The same file under another path. */
  movedTo(realPath: string, revision: string | undefined): FileSnapshot {
    const { path, size, mode } = this;
    const [content, digest] = [this.#bytes, this.#digest];
    return new FileSnapshot({ path, realPath, revision, content, digest, size, mode });
  }

  toJSON(): Record<string, unknown> {
    const { kind, path, realPath, revision, digest, size, mode } = this;
    return { kind, path, realPath, revision, digest, size, mode };
  }

  [inspect.custom](): Record<string, unknown> {
    return this.toJSON();
  }
}

const NO_FILES: ReadonlyMap<string, FileState> = new Map();

/** Nothing exists at the path. */
export class MissingSnapshot {
  readonly kind = 'missing';
  /** The path that is watched, absolute. */
  readonly path: string;
  readonly content = undefined;
  readonly revision = undefined;
  readonly digest = 'missing';
  readonly files: ReadonlyMap<string, FileState> = NO_FILES;

  constructor(path: string) {
    this.path = path;
  }
}

/** The kind of a set of files. */
export type SetKind =
  /** A directory with a `..data` link: all files are of one revision. */
  | 'volume'
  /** Any other directory: the files in it, not those in directories below. */
  | 'directory'
  /** The files at several paths. */
  | 'group'
  /** A directory with everything below it. */
  | 'tree';

interface SetSnapshotFields {
  readonly kind: SetKind;
  readonly path: string;
  readonly realPath: string;
  readonly revision: string | undefined;
  readonly files: ReadonlyMap<string, FileState>;
}

/**
 * Several files. Those of a volume and of a group are as they were at one instant; in a directory or a tree each
 * file is complete by itself. Its printed forms omit the contents.
 */
export class SetSnapshot {
  readonly kind: SetKind;
  /** The watched path, absolute; for a group, all paths. */
  readonly path: string;
  /** The directory, every link resolved. */
  readonly realPath: string;
  /** The revision of a volume. */
  readonly revision: string | undefined;
  /** The files by key: the path in the directory (`conf.d/app.yaml`), in a group the path as it was given. */
  readonly files: ReadonlyMap<string, FileState>;
  readonly content = undefined;
  #digest: string | undefined;

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
