/** Reads elements of ASN.1 in DER or BER, as far as Node.js does not tell what is in them. */

export const [INTEGER, OCTET_STRING, OBJECT_IDENTIFIER, SEQUENCE] = [0x02, 0x04, 0x06, 0x30];

/** Where an element is in the bytes. */
interface Header {
  readonly tag: number;
  /** Of its content. */
  readonly start: number;
  readonly end: number;
}

export interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** @param bytes at least two */
export function headerOf(bytes: Buffer): Header {
  const [tag = 0, first = 0] = bytes;
  // Of BER, a length that is not given is one of no bytes.
  const start = 2 + (first < 0x80 ? 0 : first & 0x7f);
  const length = first < 0x80 ? first : numberIn(bytes.subarray(2, start));
  return { tag, start, end: start + length };
}

/** The elements one after another, as far as there are any. The last one may be cut off. */
export function elementsIn(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let rest = bytes; rest.length >= 2;) {
    const { tag, start, end } = headerOf(rest);
    elements.push({ tag, content: rest.subarray(start, end) });
    rest = rest.subarray(end);
  }
  return elements;
}

export function numberIn(bytes: Buffer): number {
  return bytes.length === 0 ? 0 : Number(`0x${bytes.toString('hex')}`);
}
