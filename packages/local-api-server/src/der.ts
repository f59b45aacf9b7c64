/** Encodes and decodes DER (X.690), the format of certificates and requests for them. */

/** An element of DER with its header. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const bytes = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length]), bytes, content]);
}

export function sequence(...elements: readonly Uint8Array[]): Buffer {
  return der(0x30, ...elements);
}

/** An unsigned integer, big-endian. */
export function integer(bytes: Uint8Array): Buffer {
  return der(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

export function boolean(value: boolean): Buffer {
  return der(0x01, Buffer.from([value ? 0xff : 0]));
}

export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return der(0x03, Buffer.from([unusedBits]), bytes);
}

/** An object identifier, such as `2.5.29.17`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let high = arc >>> 7; high > 0; high >>>= 7) digits.unshift((high & 0x7f) | 0x80);
    return digits;
  });
  return der(0x06, Buffer.from(bytes));
}

/** A time: `UTCTime` until 2049, then `GeneralizedTime`, without milliseconds. */
export function time(iso: string): Buffer {
  const digits = iso.slice(0, 19).replace(/\D/g, '');
  const isShort = digits >= '1950' && digits < '2050';
  return der(isShort ? 0x17 : 0x18, Buffer.from(`${isShort ? digits.slice(2) : digits}Z`));
}

/** A decoded element: its tag, its content, and the whole element. */
export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  readonly whole: Buffer;
}

/** The elements of a content. Throws a `RangeError` if it is cut off. */
export function elementsOf(content: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < content.length;) {
    const tag = content.readUInt8(at);
    const first = content.readUInt8(at + 1);
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
    const length = lengthBytes === 0 ? first : content.readUIntBE(at + 2, lengthBytes);
    const from = at + 2 + lengthBytes;
    const to = from + length;
    if (to > content.length) throw new RangeError('DER is cut off');
    elements.push({ tag, content: content.subarray(from, to), whole: content.subarray(at, to) });
    at = to;
  }
  return elements;
}
