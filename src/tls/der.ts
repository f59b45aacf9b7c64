/** Reads DER (X.690): elements of a tag, a length and a content. */

/** An element without its header. */
export interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** The bytes are not what the reader expects. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}

/**
 * The elements that follow each other in these bytes; those after the first `limit` are not read.
 * @throws {Malformed} when the bytes end within an element, or its length is not DER.
 */
export function childrenOf(bytes: Buffer | undefined, limit = Infinity): Element[] {
  const children: Element[] = [];
  let rest = bytes ?? Buffer.alloc(0);
  while (rest.length > 0 && children.length < limit) {
    const [tag = 0, first = 0] = rest;
    const sizeOfLength = first < 0x80 ? 0 : first & 0x7f;
    // Above 4 bytes it is longer than any file here; 0 bytes mark a length that is not given.
    if (first === 0x80 || sizeOfLength > 4 || rest.length < 2 + sizeOfLength)
      throw new Malformed('it is not DER');
    const start = 2 + sizeOfLength;
    const length = sizeOfLength === 0 ? first : rest.readUIntBE(2, sizeOfLength);
    if (rest.length < start + length) throw new Malformed('it is cut off');
    children.push({ tag, content: rest.subarray(start, start + length) });
    rest = rest.subarray(start + length);
  }
  return children;
}

/** An object identifier, dotted; undefined if the element is none. */
export function oidOf(element: Element | undefined): string | undefined {
  if (element?.tag !== 0x06) return undefined;
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of element.content) {
    arc = arc * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    arcs.push(arc);
    arc = 0;
  }
  const [first = 0, ...rest] = arcs;
  const top = Math.min(2, Math.floor(first / 40));
  return [top, first - 40 * top, ...rest].join('.');
}

/** @throws {Malformed} if it is no whole number that is small enough. */
export function integerOf(element: Element | undefined): number {
  const { tag, content } = element ?? { tag: 0, content: Buffer.alloc(0) };
  if (tag !== 0x02 || content.length === 0 || content.length > 6)
    throw new Malformed('a number in it is not valid');
  return content.readUIntBE(0, content.length);
}
