/** Reads one file whole, with what tells whether it was whole. */
import { constants, type BigIntStats } from 'node:fs';

import { inodeOf, signatureOf, type LinkChain } from './link-chain.js';
import { digestOf, FileSnapshot } from './snapshot.js';
import type { SeenFile } from './sighting.js';
import { call, type Steps } from './steps.js';

/** A pipe (O_NONBLOCK) or a link (O_NOFOLLOW) may have taken the place of the file that was found. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Asked for at a time when a file does not say its size (as in /proc). */
const CHUNK_BYTES = 65_536;

/** Where a file is and which of its bytes are wanted. */
export interface FileReading {
  /** For its snapshot. */
  readonly path: string;
  /** Where it is read, all links resolved. */
  readonly realPath: string;
  readonly revision: string | undefined;
  readonly links: string;
  /** What is known of the file; then it has to be the same when it was read. */
  readonly found?: BigIntStats | undefined;
  readonly maxContentBytes: number;
  /** Keeps the digest of the content, not the content. */
  readonly digestOnly?: boolean;
}

/**
 * Reads it; undefined when another file has taken its place since it was found, or when it is none.
 * Throws what the calls throw.
 */
export function* readSeenFile(reading: FileReading): Steps<SeenFile | undefined> {
  const { realPath, found, maxContentBytes } = reading;
  if (found && found.size > maxContentBytes) return seenFile(reading, found, undefined, true);
  const fd = yield* call('open', realPath, READ_ONLY);
  try {
    const before = found ?? (yield* call('fstat', fd));
    const fits = before.isFile() && before.size <= maxContentBytes;
    const content = fits ? yield* readToEnd(fd, before, maxContentBytes) : undefined;
    const after = found ? yield* call('fstat', fd) : before;
    if (!after.isFile() || inodeOf(after) !== inodeOf(before)) return undefined;
    return seenFile(reading, after, content, signatureOf(after) === signatureOf(before));
  } finally {
    yield* call('close', fd);
  }
}

/** A file that was seen before with this very signature, where it is now. */
export function fileAgain(
  file: SeenFile,
  realPath: string,
  { revision, links }: Pick<LinkChain, 'revision' | 'links'>,
): SeenFile {
  const { snapshot } = file;
  const moved = snapshot.realPath !== realPath || snapshot.revision !== revision;
  return {
    ...file,
    finished: true,
    steady: true,
    links,
    snapshot: moved ? snapshot.movedTo(realPath, revision) : snapshot,
  };
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

/** @param content undefined when it was not read: then the identity stands for it. */
function seenFile(
  { path, realPath, revision, links, digestOnly = false }: FileReading,
  stat: BigIntStats,
  content: Buffer | undefined,
  steady: boolean,
): SeenFile {
  const identity =
    content && digestOnly
      ? digestOf(content)
      : `stat:${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
  return {
    signature: signatureOf(stat),
    inode: inodeOf(stat),
    // Being unlinked changes an inode, too, and says nothing of its bytes.
    finished: stat.ctimeNs > stat.mtimeNs && stat.nlink > 0n,
    steady,
    links,
    snapshot: new FileSnapshot({
      path,
      realPath,
      revision,
      content: digestOnly ? undefined : content,
      identity,
      size: content?.length ?? Number(stat.size),
      mode: Number(stat.mode & 0o7777n),
    }),
  };
}
