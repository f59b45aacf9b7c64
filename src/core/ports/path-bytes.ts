/**
 * File names are bytes, and not every name is UTF-8. A byte that is not part of a UTF-8 sequence is represented in
 * a path by a lone surrogate, U+DC80 to U+DCFF, as in Python's `surrogateescape`: different names stay different,
 * and each can be turned back into its bytes.
 */
import { isUtf8 } from './builtins.js';

const FIRST_ESCAPE = 0xdc00;

/** A lone surrogate that represents one byte; the second half of a surrogate pair does not. */
const ESCAPED_BYTE = /(?<![\ud800-\udbff])[\udc80-\udcff]/g;

const SEQUENCE_LENGTHS = [1, 2, 3, 4];

/** The path with these bytes. */
export function pathFromBytes(bytes: Buffer): string {
  const text = bytes.toString();
  // Checked first because `isUtf8` takes longer than decoding a name.
  if (!mayHaveLostBytes(text) || isUtf8(bytes)) return text;
  let path = '';
  for (let at = 0; at < bytes.length;) {
    const rest = bytes.subarray(at);
    const length = SEQUENCE_LENGTHS.find((count) => count <= rest.length && isUtf8(rest.subarray(0, count)));
    path += length ? rest.toString('utf8', 0, length) : String.fromCharCode(FIRST_ESCAPE + (rest[0] ?? 0));
    at += length ?? 1;
  }
  return path;
}

/** The path itself, or its bytes if it has escaped ones. */
export function bytesForCall(path: string): string | Buffer {
  if (path.isWellFormed()) return path;
  const parts: Buffer[] = [];
  let from = 0;
  for (const { 0: escaped, index } of path.matchAll(ESCAPED_BYTE)) {
    parts.push(Buffer.from(path.slice(from, index)), Buffer.of(escaped.charCodeAt(0) - FIRST_ESCAPE));
    from = index + 1;
  }
  return Buffer.concat([...parts, Buffer.from(path.slice(from))]);
}

/** The part of a path whose names are known: up to the directory of the first one that may have lost bytes. */
export function knownPart(path: string): string {
  const lost = path.indexOf('\ufffd');
  return lost < 0 ? path : path.slice(0, Math.max(1, path.lastIndexOf('/', lost)));
}

/** Whether a name decoded by Node.js may have lost bytes, which it replaces with U+FFFD. */
export function mayHaveLostBytes(name: string): boolean {
  return name.includes('\ufffd');
}
