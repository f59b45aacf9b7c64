import type { X509Certificate } from 'node:crypto';

/** What the extensions of a certificate say; Node.js does not expose it. */
export interface Constraints {
  /** How many authorities may follow below; `Infinity` if there is no limit. */
  readonly maxPathLength: number;
  /** Whether it may sign certificates. */
  readonly maySign: boolean;
  /** The critical extensions that are not understood, as hexadecimal identifiers. */
  readonly unknown: readonly string[];
}

const BASIC_CONSTRAINTS = '551d13';
const KEY_USAGE = '551d0f';
const EXTENDED_KEY_USAGE = '551d25';
const SUBJECT_ALT_NAME = '551d11';
const UNDERSTOOD: readonly string[] = [BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, SUBJECT_ALT_NAME];

interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** Reads the extensions of a certificate that OpenSSL has parsed. */
export function constraintsOf({ raw }: X509Certificate): Constraints {
  const [certificate] = elementsOf(raw);
  const [toSign] = elementsOf(certificate?.content);
  const wrapper = elementsOf(toSign?.content).find(({ tag }) => tag === 0xa3);
  const [list] = elementsOf(wrapper?.content);
  let maxPathLength = Infinity;
  let maySign = true;
  const unknown: string[] = [];
  for (const { content } of elementsOf(list?.content)) {
    const parts = elementsOf(content);
    const id = parts[0]?.content.toString('hex') ?? '';
    const isCritical = parts[1]?.tag === 0x01 && parts[1].content[0] !== 0;
    const [value] = elementsOf(parts.at(-1)?.content);
    if (id === BASIC_CONSTRAINTS) {
      const limit = elementsOf(value?.content).find(({ tag }) => tag === 0x02)?.content;
      if (limit) maxPathLength = limit.length === 1 ? limit.readUInt8(0) : 0;
    } else if (id === KEY_USAGE) {
      // The first byte says how many bits are unused; `keyCertSign` is bit 5.
      maySign = ((value?.content[1] ?? 0) & 0x04) !== 0;
    } else if (isCritical && !UNDERSTOOD.includes(id)) unknown.push(id);
  }
  return { maxPathLength, maySign, unknown };
}

/** The elements of DER, which OpenSSL has already found to be complete. */
function elementsOf(der: Buffer = Buffer.alloc(0)): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at + 1 < der.length;) {
    const first = der.readUInt8(at + 1);
    const lengthBytes = first < 0x80 ? 0 : Math.min(first & 0x7f, 4);
    const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
    const from = at + 2 + lengthBytes;
    elements.push({ tag: der.readUInt8(at), content: der.subarray(from, from + length) });
    at = from + length;
  }
  return elements;
}
