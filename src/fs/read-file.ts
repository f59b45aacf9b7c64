import { insidePath } from '../core/ports/platform-path.js';
import { stableRead, type ReadingPorts } from './stable-read.js';
import { FileSnapshot, type Snapshot } from './snapshot.js';
import { PathTarget } from './targets/path.js';

/** Creates the error to throw; `reason` completes "Cannot read …: ". */
type ReadFailure = (reason: string, cause?: unknown) => Error;

/**
 * Reads the bytes of a file, all from one state of it, even if it is replaced while it is read.
 * @param maxBytes a larger file is refused.
 */
export async function readFile(
  path: string,
  maxBytes: number,
  ports: ReadingPorts,
  failed: ReadFailure,
): Promise<Buffer> {
  return bytesIn(await snapshotOf(path, maxBytes, ports, failed), maxBytes, failed);
}

/** As `readFile()`; undefined if the file does not exist. */
export async function readFileIfAny(
  path: string,
  maxBytes: number,
  ports: ReadingPorts,
  failed: ReadFailure,
): Promise<Buffer | undefined> {
  const snapshot = await snapshotOf(path, maxBytes, ports, failed);
  return snapshot.kind === 'missing' ? undefined : bytesIn(snapshot, maxBytes, failed);
}

async function snapshotOf(
  path: string,
  maxBytes: number,
  ports: ReadingPorts,
  failed: ReadFailure,
): Promise<Snapshot> {
  // If the path is a directory, its files are not read.
  const limits = { maxContentBytes: maxBytes, maxTotalBytes: maxBytes, maxFiles: 0 };
  try {
    return await stableRead(new PathTarget(insidePath(path), limits), ports);
  } catch (cause) {
    throw failed(cause instanceof Error ? cause.message : String(cause), cause);
  }
}

/** The bytes in a snapshot of a file that was read with this limit; not a copy, so they must not be changed. */
export function bytesIn(snapshot: Snapshot, maxBytes: number, failed: ReadFailure): Buffer {
  if (snapshot.kind === 'missing') throw failed('it does not exist');
  if (snapshot.kind !== 'file') throw failed('it is a directory');
  const bytes = FileSnapshot.bytesOf(snapshot);
  if (bytes) return bytes;
  throw failed(`it has ${snapshot.size} bytes, more than the limit of ${maxBytes}`);
}

/**
 * What is wrong with bytes that are UTF-16, as some editors and shells of Windows write; undefined for others. UTF-16
 * begins with a byte order mark, or with a character of ASCII, of which one byte is NUL.
 */
export function utf16In(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  const isAscii = bytes.length % 2 === 0 && (first === 0) !== (second === 0);
  if (!isMarked && !isAscii) return undefined;
  const encoding = isMarked ? 'UTF-16' : `UTF-16${first === 0 ? 'BE' : 'LE'}`;
  return `is UTF-16; convert it: iconv -f ${encoding} -t UTF-8 FILE`;
}

/** Without the line ends at its end, as a shell does with the output of a command. Linear, whatever the text. */
export function withoutLineEnds(text: string): string {
  let end = text.length;
  while (text[end - 1] === '\n' || text[end - 1] === '\r') end -= 1;
  return text.slice(0, end);
}
