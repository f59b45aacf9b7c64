/** Reads one file and detects changes during the read. */
import { constants, type BigIntStats } from 'node:fs';

import type { FileSystemCalls } from '../core/file-system.js';
import {
  identityIn,
  identityOf,
  isFinished,
  PERMISSIONS,
  signatureOf,
  statDigest,
  type Signed,
} from './file-identity.js';
import type { ResolvedChain } from './link-chain.js';
import { digestOf, FileSnapshot } from './snapshot.js';
import type { SeenFile } from './observation.js';
import type { Effects } from './effects.js';
import { NO_BYTES, readToEnd } from './read-to-end.js';

const { S_IFMT, S_IFREG } = constants;

/** A pipe (O_NONBLOCK) or a link (O_NOFOLLOW) may have replaced the file that was found. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Where a file is. */
export interface FilePlace {
  /** The path for its snapshot. */
  readonly path: string;
  /** The path it is read from, with all links resolved. */
  readonly realPath: string;
  readonly revision: string | undefined;
  readonly links: string;
}

/** A file, and how much of it is kept. */
interface FileReading extends FilePlace {
  /** What is known of the file; it must be the same when it is read. */
  readonly found?: BigIntStats | undefined;
  readonly maxContentBytes: number;
  /** The file as it was before, whose bytes are shared if they are equal: that compares them once for all. */
  readonly before?: FileSnapshot | undefined;
  /** Whether only the digest of the content is kept. */
  readonly digestOnly?: boolean;
}

/**
 * Reads the file; undefined if another file has replaced it since it was found, or if it is not a regular file.
 * Throws what the calls throw.
 */
export function* readSeenFile(reading: FileReading): Effects<SeenFile | undefined> {
  const { realPath, found, maxContentBytes } = reading;
  if (found && found.size > maxContentBytes) return seenFile(reading, found, undefined, true);
  // The calls are yielded directly, since `call` creates a generator for each.
  const fd = (yield ['open', realPath, READ_ONLY]) as number;
  try {
    const before = found ?? ((yield ['fstat', fd]) as BigIntStats);
    const fits = before.isFile() && before.size <= maxContentBytes;
    const content = fits ? yield* readToEnd(fd, Number(before.size), maxContentBytes) : undefined;
    if (!found) return before.isFile() ? seenFile(reading, before, content, true) : undefined;
    const after = (yield ['fstat', fd]) as BigIntStats;
    if (!after.isFile() || identityOf(after) !== identityOf(before)) return undefined;
    return seenFile(reading, after, content, signatureOf(after) === signatureOf(before));
  } finally {
    yield ['close', fd];
  }
}

/**
 * The same, at once, and only of a file that fits: undefined for anything else, and if a call fails.
 * @param before see `FileReading`.
 * @param inode that of a file which is not wanted: undefined for it, too.
 */
export function readFileNow(
  { path, realPath, revision, links }: FilePlace,
  maxContentBytes: number,
  calls: FileSystemCalls,
  before?: FileSnapshot,
  inode?: string,
): SeenFile | undefined {
  let fd: number | undefined;
  try {
    fd = calls.open(realPath, READ_ONLY);
    const stat = calls.fstat(fd);
    const mode = Number(stat.mode);
    const size = Number(stat.size);
    // In place of `isFile()`, which creates two more bigints.
    if ((mode & S_IFMT) !== S_IFREG || size > maxContentBytes) return undefined;
    if (inode !== undefined && identityOf(stat) === inode) return undefined;
    // A file without a size may have content all the same, as in /proc.
    const bytes = Buffer.allocUnsafe(size || 1);
    if (calls.read(fd, bytes, 0, bytes.length, 0) !== size) return undefined;
    const content = size === 0 ? NO_BYTES : sharedBytes(bytes, before);
    const snapshot = new FileSnapshot({ path, realPath, revision, content, size, mode: mode & PERMISSIONS });
    return new FileReadNow(snapshot, links, stat);
  } catch {
    return undefined;
  } finally {
    try {
      if (fd !== undefined) calls.close(fd);
    } catch {
      // Nothing was written, and the descriptor is released all the same. The caller may be the callback of an event.
    }
  }
}

/** A file that was read completely. Its signature is computed on demand, which is never before the report. */
class FileReadNow implements SeenFile {
  readonly snapshot: FileSnapshot;
  readonly links: string;
  readonly steady = true;
  readonly finished: boolean;
  #signed: Signed | undefined;
  #signature = '';

  constructor(snapshot: FileSnapshot, links: string, stat: BigIntStats) {
    const { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs } = stat;
    this.snapshot = snapshot;
    this.links = links;
    this.finished = isFinished(stat);
    // Whatever survives a collection of garbage makes it slower, and the whole stat takes four times as much.
    this.#signed = { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs };
  }

  get signature(): string {
    if (this.#signed) {
      this.#signature = signatureOf(this.#signed);
      this.#signed = undefined;
    }
    return this.#signature;
  }

  get inode(): string {
    return identityIn(this.signature);
  }
}

/** A file that was seen before with this signature, at its present place. */
export function fileAgain(
  { signature, inode, snapshot }: SeenFile,
  realPath: string,
  { revision, links }: Pick<ResolvedChain, 'revision' | 'links'>,
): SeenFile {
  const moved = snapshot.realPath !== realPath || snapshot.revision !== revision;
  return {
    signature,
    inode,
    finished: true,
    steady: true,
    links,
    snapshot: moved ? snapshot.movedTo(realPath, revision) : snapshot,
  };
}

/** @param content undefined if it was not read; then `statDigest` represents it. */
function seenFile(
  { path, realPath, revision, links, before, digestOnly = false }: FileReading,
  stat: BigIntStats,
  content: Buffer | undefined,
  steady: boolean,
): SeenFile {
  const signature = signatureOf(stat);
  return {
    signature,
    inode: identityIn(signature),
    finished: isFinished(stat),
    steady,
    links,
    snapshot: new FileSnapshot({
      path,
      realPath,
      revision,
      content: digestOnly || !content ? undefined : sharedBytes(content, before),
      digest: content ? (digestOnly ? digestOf(content) : undefined) : statDigest(stat),
      size: content?.length ?? Number(stat.size),
      mode: Number(stat.mode) & PERMISSIONS,
    }),
  };
}

function sharedBytes(bytes: Buffer, before: FileSnapshot | undefined): Buffer {
  const known = before && FileSnapshot.bytesOf(before);
  return known?.equals(bytes) ? known : bytes;
}
