/** What a target is at one instant, read whole and from one revision. */
import { hash } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { inspect } from 'node:util';

import { errnoOf, hasMoved, type TargetError } from './errors.js';
import { followSwap, resolveChain, targetError, type LinkChain } from './link-chain.js';
import { call, type Steps } from './steps.js';

/** A pipe (O_NONBLOCK) or a link (O_NOFOLLOW) may have taken the place of the file that was found. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Asked for at a time when a file does not say its size (as in /proc). */
const CHUNK_BYTES = 65_536;

/** How often a file that vanishes between finding and opening it is looked for again. */
const MAX_READS = 20;

interface FileSnapshotFields {
  readonly path: string;
  readonly realPath: string;
  readonly revision: string | undefined;
  readonly content: Buffer | undefined;
  readonly identity: string;
  readonly size: number;
  readonly mode: number;
}

/** A file as it was at one instant. Its printed forms (`inspect`, JSON) leave the content out. */
export class FileSnapshot {
  readonly kind = 'file';
  /** The path that is watched, absolute. */
  readonly path: string;
  /** Where it was read, every link resolved. */
  readonly realPath: string;
  /** The revision it was read from: what `..data` pointed to. Undefined outside a volume. */
  readonly revision: string | undefined;
  /** Its bytes; undefined when there are more than `maxContentBytes`. */
  readonly content: Buffer | undefined;
  /** Bytes. */
  readonly size: number;
  /** Permission bits, as 0o644. */
  readonly mode: number;
  readonly #identity: string;
  #digest: string | undefined;

  constructor(fields: FileSnapshotFields) {
    this.path = fields.path;
    this.realPath = fields.realPath;
    this.revision = fields.revision;
    this.content = fields.content;
    this.size = fields.size;
    this.mode = fields.mode;
    this.#identity = fields.identity;
  }

  /** `sha256:…` of the content or, where that is not read, `stat:…` of the identity. Equal digest, equal content. */
  get digest(): string {
    // Not before somebody asks: hashing would take a tenth of the time from a swap to its report.
    this.#digest ??= this.content ? `sha256:${hash('sha256', this.content, 'hex')}` : this.#identity;
    return this.#digest;
  }

  /** The same file at another place. */
  movedTo(realPath: string, revision: string | undefined): FileSnapshot {
    const { path, content, size, mode } = this;
    return new FileSnapshot({ path, realPath, revision, content, size, mode, identity: this.#identity });
  }

  toJSON(): Record<string, unknown> {
    const { kind, path, realPath, revision, digest, size, mode } = this;
    return { kind, path, realPath, revision, digest, size, mode };
  }

  [inspect.custom](): Record<string, unknown> {
    return this.toJSON();
  }
}

/** Nothing is at the path. */
export class MissingSnapshot {
  readonly kind = 'missing';
  /** The path that is watched, absolute. */
  readonly path: string;
  readonly content = undefined;
  readonly revision = undefined;
  readonly digest = 'missing';

  constructor(path: string) {
    this.path = path;
  }
}

/** The state of a target. */
export type Snapshot = FileSnapshot | MissingSnapshot;

/** What one look found. */
export type Sighting = { readonly chain: LinkChain } & (
  | FileSighting
  | { readonly kind: 'missing' }
  | { readonly kind: 'trouble'; readonly error: TargetError }
  | { readonly kind: 'moving' }
  | { readonly kind: 'unfamiliar' }
);

/** A file that was read, with what tells whether it is whole. */
export interface FileSighting {
  readonly kind: 'file';
  readonly chain: LinkChain;
  readonly snapshot: FileSnapshot;
  /** Equal signatures mean equal content, once the signature is older than the clock that stamps it is coarse. */
  readonly signature: string;
  /** Which file it is, whatever is in it. */
  readonly inode: string;
  /** Its inode was changed after its last byte was written: it was renamed, linked or re-moded when complete. */
  readonly finished: boolean;
  /** It did not change while it was read. */
  readonly steady: boolean;
}

/** What an earlier look found and what need not be read again. */
export type Known = Pick<FileSighting, 'signature' | 'inode' | 'snapshot'>;

function inodeOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}

function signatureOf(stat: BigIntStats): string {
  return `${inodeOf(stat)}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

/**
 * Looks at a file.
 *
 * @param known what an earlier look found, when its signature can be trusted: then an unchanged file is not read.
 * @param familiar mounts that may be entered, see `resolveChain`.
 */
export function* lookAtFile(
  path: string,
  maxContentBytes: number,
  known?: Known,
  familiar?: ReadonlyMap<string, unknown>,
): Steps<Sighting> {
  for (let reading = 0; reading < MAX_READS; reading += 1) {
    const chain = yield* resolveChain(path, familiar);
    const { end } = chain;
    if (end.kind === 'missing') return { kind: 'missing', chain };
    if (end.kind !== 'found') return { ...end, chain };
    if (known?.signature === signatureOf(end.stat)) return unchanged(known, end.path, chain);
    if (!end.stat.isFile()) return { kind: 'trouble', chain, error: notAFile(end.path, end.stat) };
    try {
      const file = yield* readFile(end.path, end.stat, maxContentBytes);
      // Another file has taken its place since it was found.
      if (inodeOf(file.stat) !== inodeOf(end.stat)) continue;
      return sightingOf(path, chain, end.path, file);
    } catch (error) {
      if (hasMoved(error)) continue;
      const code = errnoOf(error);
      if (code === undefined) throw error;
      const denied = code === 'EACCES' || code === 'EPERM';
      const kind = denied ? 'ERR_TARGET_ACCESS' : 'ERR_TARGET_IO';
      return { kind: 'trouble', chain, error: targetError(kind, end.path, error) };
    }
  }
  return { kind: 'moving', chain: yield* resolveChain(path, familiar) };
}

/**
 * Looks only whether a link of a known chain leads elsewhere now, and if so reads the file there: what a swap needs
 * to be reported, in 6 calls instead of some 15. Undefined when no link does, or when anything is unusual: then only
 * the whole look tells. It must follow in any case, for what else has changed and for what is to be watched.
 *
 * The kernel resolves the path that is opened, so the content is what the target holds at that moment.
 */
export function* lookAtSwap(
  path: string,
  maxContentBytes: number,
  chain: LinkChain,
): Steps<FileSighting | undefined> {
  try {
    const swapped = yield* followSwap(path, chain);
    if (!swapped) return undefined;
    const file = yield* readFile(swapped.realPath, undefined, maxContentBytes);
    return file.stat.isFile() ? sightingOf(path, swapped.chain, swapped.realPath, file) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the links of a chain lead where they led and the file there bears the same signature, in one or two calls
 * a link and one for the file. It cannot tell a path that has been laid anew to the very same file.
 */
export function* isUnchanged(path: string, known: FileSighting): Steps<boolean> {
  try {
    if (yield* followSwap(path, known.chain)) return false;
    return signatureOf(yield* call('lstat', known.snapshot.realPath)) === known.signature;
  } catch {
    return false;
  }
}

function unchanged(known: Known, realPath: string, chain: LinkChain): Sighting {
  const { snapshot, signature, inode } = known;
  const moved = snapshot.realPath !== realPath || snapshot.revision !== chain.revision;
  return {
    kind: 'file',
    chain,
    signature,
    inode,
    finished: true,
    steady: true,
    snapshot: moved ? snapshot.movedTo(realPath, chain.revision) : snapshot,
  };
}

interface ReadFile {
  /** As it was after the last byte was read. */
  readonly stat: BigIntStats;
  readonly content: Buffer | undefined;
  readonly steady: boolean;
}

/** @param found what is known of the file; then it has to be the same when it was read. */
function* readFile(path: string, found: BigIntStats | undefined, maxContentBytes: number): Steps<ReadFile> {
  if (found && found.size > maxContentBytes) return { stat: found, content: undefined, steady: true };
  const fd = yield* call('open', path, READ_ONLY);
  try {
    const before = found ?? (yield* call('fstat', fd));
    const fits = before.isFile() && before.size <= maxContentBytes;
    const content = fits ? yield* readToEnd(fd, before, maxContentBytes) : undefined;
    const after = found ? yield* call('fstat', fd) : before;
    return { stat: after, content, steady: signatureOf(after) === signatureOf(before) };
  } finally {
    yield* call('close', fd);
  }
}

/** All bytes, or undefined when there are more than allowed. */
function* readToEnd(fd: number, { size }: BigIntStats, maxBytes: number): Steps<Buffer | undefined> {
  // One more than its size: the end shows in the same read.
  let buffer = Buffer.alloc((size === 0n ? CHUNK_BYTES : Number(size)) + 1);
  let length = 0;
  for (;;) {
    const count = yield* call('read', fd, buffer, length, buffer.length - length, length);
    length += count;
    if (length > maxBytes) return undefined;
    if (count === 0 || BigInt(length) === size) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.alloc(CHUNK_BYTES)]);
  }
}

function sightingOf(path: string, chain: LinkChain, realPath: string, file: ReadFile): FileSighting {
  const { stat, content, steady } = file;
  return {
    kind: 'file',
    chain,
    signature: signatureOf(stat),
    inode: inodeOf(stat),
    // Being unlinked changes an inode, too, and says nothing of its bytes.
    finished: stat.ctimeNs > stat.mtimeNs && stat.nlink > 0n,
    steady,
    snapshot: new FileSnapshot({
      path,
      realPath,
      revision: chain.revision,
      content,
      identity: `stat:${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`,
      size: content?.length ?? Number(stat.size),
      mode: Number(stat.mode & 0o7777n),
    }),
  };
}

function notAFile(path: string, stat: BigIntStats): TargetError {
  const what = stat.isDirectory() ? 'a directory' : 'not a regular file';
  return targetError('ERR_TARGET_NOT_FILE', path, new Error(`it is ${what}, but a file is watched`));
}
