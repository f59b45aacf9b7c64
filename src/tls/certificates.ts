/** Parses certificates and keys with OpenSSL, and refuses those that would fail in a handshake. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

import { TlsError, type TlsErrorCode } from './tls-error.js';
import { parseCertificateDate } from '../core/clock.js';

/** A private key may be in the same file as the certificate, as HAProxy requires. */
const PEM_KEY = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----[\s\S]*?-----END \1PRIVATE KEY-----/;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/**
 * Returns the certificates of a PEM file, at least one, in the order of the file.
 * @throws {TlsError} with the given code.
 */
export function parseCertificates(path: string, bytes: Buffer, code: TlsErrorCode): X509Certificate[] {
  const blocks = bytes.toString('latin1').match(PEM_CERTIFICATE);
  if (!blocks) throw new TlsError(code, `"${path}" ${whyNoCertificate(bytes)}`);
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      const which = blocks.length > 1 ? `certificate ${index + 1} of ${blocks.length}` : 'the certificate';
      const why = whyUnparsable(block, cause as Error);
      throw new TlsError(code, `Cannot parse ${which} in "${path}": ${why}`, { cause });
    }
  });
}

function whyNoCertificate(bytes: Buffer): string {
  if (bytes.length === 0) return 'is empty';
  const found = whatElse(bytes);
  if (found) return `${found}, but no complete certificate`;
  return isParsed(() => new X509Certificate(bytes))
    ? 'is DER; convert it to PEM: openssl x509 -inform der -in FILE'
    : 'holds no PEM certificate';
}

function whyNoKey(bytes: Buffer): string {
  if (bytes.length === 0) return 'is empty';
  const found = whatElse(bytes);
  if (found) return `${found}, but no complete private key`;
  const isDer = (['pkcs8', 'sec1', 'pkcs1'] as const).some((type) =>
    isParsed(() => createPrivateKey({ key: bytes, format: 'der', type })),
  );
  return isDer
    ? 'is DER; convert it to PEM: openssl pkey -inform der -in FILE'
    : 'holds no complete private key in PEM';
}

/** Describes what a file holds instead, for example because it is truncated. Quotes only labels, never contents. */
function whatElse(bytes: Buffer): string | undefined {
  const [, label] = /-----BEGIN ([A-Z0-9 ]{1,40})-----/.exec(bytes.toString('latin1')) ?? [];
  return label && `holds PEM of type "${label}"`;
}

function isParsed(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

/** The reason why OpenSSL cannot parse a PEM block. */
function whyUnparsable(block: string, { message }: Error): string {
  return block.includes('\n') ? message : 'it has no line breaks; PEM needs them after BEGIN and before END';
}

/**
 * Returns the private key of a PEM file.
 * @throws {TlsError} `ERR_TLS_KEY`, `ERR_TLS_KEY_ENCRYPTED`. The message never quotes the file.
 */
export function parseKey(path: string, bytes: Buffer): KeyObject {
  const text = bytes.toString('latin1');
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new TlsError(
      'ERR_TLS_KEY_ENCRYPTED',
      `The private key in "${path}" is protected by a passphrase; store it without one: openssl pkey -in FILE`,
    );
  }
  const [block] = PEM_KEY.exec(text) ?? [];
  if (block === undefined) {
    throw new TlsError('ERR_TLS_KEY', `"${path}" ${whyNoKey(bytes)}`);
  }
  try {
    return createPrivateKey(block);
  } catch (cause) {
    const why = whyUnparsable(block, cause as Error);
    throw new TlsError('ERR_TLS_KEY', `Cannot parse the private key in "${path}": ${why}`, { cause });
  }
}

/**
 * The longest certificate message that clients based on OpenSSL accept, bytes (`SSL_MAX_CERT_LIST_DEFAULT`): a header of
 * 4 bytes, and up to 5 for each certificate.
 */
const MAX_MESSAGE_BYTES = 100 * 1024;

/**
 * Checks that clients accept the length of the chain, and that each certificate after the first has issued one before
 * it. Plain chains, chains with cross-signed alternatives and repeated certificates pass, as they do in clients; a chain
 * in another order does not.
 * @throws {TlsError} `ERR_TLS_CHAIN`.
 */
export function checkChain(path: string, chain: readonly X509Certificate[]): void {
  const bytes = chain.reduce((sum, { raw }) => sum + raw.length + 5, 4);
  if (bytes > MAX_MESSAGE_BYTES) {
    throw new TlsError(
      'ERR_TLS_CHAIN',
      `The chain in "${path}" is too long: ${chain.length} certificates take ${bytes} bytes in a handshake, and clients accept ${MAX_MESSAGE_BYTES}`,
    );
  }
  for (const [index, issuer] of chain.entries()) {
    const before = chain.slice(0, index);
    if (index === 0 || before.some((issued) => isSame(issuer, issued) || hasIssued(issuer, issued))) continue;
    const message = `certificate ${index + 1} of ${chain.length} (${nameOf(issuer)}) has issued none before it; the order is: server certificate, its issuer, the issuer's issuer`;
    throw new TlsError('ERR_TLS_CHAIN', `The chain in "${path}" is not in order: ${message}`);
  }
}

function isSame(a: X509Certificate, b: X509Certificate): boolean {
  return a.fingerprint256 === b.fingerprint256;
}

function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  return issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
}

/** The validity of a certificate, epoch ms. */
export interface Validity {
  readonly notBefore: number;
  readonly expiresAt: number;
}

/**
 * When a chain is valid: from the start of the first certificate to the earliest end in the chain. If an issuer has
 * several certificates (cross-signed ones), the latest of their ends counts. Roots are ignored, because clients have
 * their own.
 */
export function validityOf([leaf, ...issuers]: readonly [X509Certificate, ...X509Certificate[]]): Validity {
  const ends = new Map<string, number>();
  for (const issuer of issuers) {
    if (issuer.issuer === issuer.subject) continue;
    ends.set(issuer.subject, Math.max(ends.get(issuer.subject) ?? 0, parseCertificateDate(issuer.validTo)));
  }
  return {
    notBefore: parseCertificateDate(leaf.validFrom),
    expiresAt: Math.min(parseCertificateDate(leaf.validTo), ...ends.values()),
  };
}

/** The subject of a certificate on one line. */
export function nameOf({ subject }: X509Certificate): string {
  // A certificate without a subject has `undefined` here, whatever the types say.
  return (subject as string | undefined)?.replaceAll('\n', ', ') ?? 'no subject';
}
