import type { X509Certificate } from 'node:crypto';

/** What the extensions of a certificate say; Node.js does not expose it, or only as text. */
export interface Extensions {
  /** The URIs among the subject alternative names. */
  readonly uris: readonly string[];
  /** Whether it claims to be an authority. */
  readonly isAuthority: boolean;
  /** How many authorities may follow below; `Infinity` if there is no limit. */
  readonly maxPathLength: number;
  /** What its key may sign; undefined if there is no limit. */
  readonly signs: Readonly<Record<'handshakes' | 'certificates' | 'revocations', boolean>> | undefined;
  /** Whether it has a critical extension that is not understood, or one twice. */
  readonly isRefused: boolean;
}

const BASIC_CONSTRAINTS = '551d13';
const KEY_USAGE = '551d0f';
const EXTENDED_KEY_USAGE = '551d25';
const SUBJECT_ALT_NAME = '551d11';
/** Must be critical, but OpenSSL applies them even if they are not. */
const NAME_CONSTRAINTS = '551d1e';
const UNDERSTOOD: readonly string[] = [BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, SUBJECT_ALT_NAME];

/** The tags of DER. */
const BOOLEAN = 0x01;
const INTEGER = 0x02;
const URI = 0x86;
const EXTENSIONS = 0xa3;

interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/**
 * Reads the extensions of a certificate that OpenSSL has parsed.
 * @throws {RangeError} if they are not DER.
 */
export function extensionsOf({ raw }: X509Certificate): Extensions {
  const values = new Map<string, readonly Element[]>();
  let isRefused = false;
  for (const { content } of listOf(raw)) {
    const parts = elementsOf(content);
    const id = parts[0]?.content.toString('hex') ?? '';
    const isCritical = parts[1]?.tag === BOOLEAN && parts[1].content[0] !== 0;
    const isUnderstood = UNDERSTOOD.includes(id);
    if (values.has(id) || id === NAME_CONSTRAINTS || (isCritical && !isUnderstood)) isRefused = true;
    // The content of any other extension may be of any kind.
    values.set(id, isUnderstood ? elementsOf(parts.at(-1)?.content) : []);
  }
  const constraints = elementsOf(values.get(BASIC_CONSTRAINTS)?.[0]?.content);
  const limit = constraints.find(({ tag }) => tag === INTEGER)?.content;
  const usage = values.get(KEY_USAGE)?.[0]?.content;
  return {
    uris: elementsOf(values.get(SUBJECT_ALT_NAME)?.[0]?.content)
      .filter(({ tag }) => tag === URI)
      .map(({ content }) => content.toString('latin1')),
    isAuthority: constraints.some(({ tag, content }) => tag === BOOLEAN && content[0] !== 0),
    maxPathLength: limit ? (limit.length === 1 ? limit.readUInt8(0) : 0) : Infinity,
    signs: usage && signsOf(usage),
    isRefused,
  };
}

/** The first byte says how many bits are unused. */
function signsOf([, bits = 0]: Buffer): Extensions['signs'] {
  return {
    handshakes: (bits & 0x80) !== 0,
    certificates: (bits & 0x04) !== 0,
    revocations: (bits & 0x02) !== 0,
  };
}

/** The extensions of a certificate. */
function listOf(certificate: Buffer): Element[] {
  const [toSign] = elementsOf(elementsOf(certificate)[0]?.content);
  const wrapper = elementsOf(toSign?.content).find(({ tag }) => tag === EXTENSIONS);
  return elementsOf(elementsOf(wrapper?.content)[0]?.content);
}

/** The elements of DER. */
function elementsOf(der: Buffer = Buffer.alloc(0)): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < der.length;) {
    const first = der.readUInt8(at + 1);
    const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
    const length = lengthBytes === 0 && first < 0x80 ? first : der.readUIntBE(at + 2, lengthBytes);
    const from = at + 2 + lengthBytes;
    if (from + length > der.length) throw new RangeError('A certificate is not in DER');
    elements.push({ tag: der.readUInt8(at), content: der.subarray(from, from + length) });
    at = from + length;
  }
  return elements;
}
