/** Parses certificates and keys with OpenSSL, and refuses those that would fail in a handshake. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

import { TlsError, type TlsErrorCode } from './tls-error.js';
import { parseCertificateDate } from '../core/clock.js';
import { isCertificate, isPrivateKey, pemBlocks, type PemBlock } from './pem.js';

/**
 * Returns the certificates of a PEM file, at least one, in the order of the file.
 * @throws {TlsError} with the given code.
 */
export function parseCertificates(path: string, bytes: Buffer, code: TlsErrorCode): X509Certificate[] {
  const blocks = pemBlocks(bytes.toString('latin1')).filter(isCertificate);
  if (!blocks.some(({ isComplete }) => isComplete)) {
    throw new TlsError(code, `"${path}" ${whyNoCertificate(bytes)}`);
  }
  return blocks.map((block, index) => {
    // It may restrict its purposes, which would be lost when it is encoded for OpenSSL.
    if (block.label === 'TRUSTED CERTIFICATE') {
      const fix = 'convert it: openssl x509 -in FILE';
      throw new TlsError(code, `"${path}" contains a "TRUSTED CERTIFICATE", which is not supported; ${fix}`);
    }
    try {
      return new X509Certificate(block.text);
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
    : 'contains no PEM certificate';
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
    : 'contains no complete private key in PEM';
}

/** Describes what a file contains instead, for example if it is truncated. Quotes only labels, never contents. */
function whatElse(bytes: Buffer): string | undefined {
  const label = pemBlocks(bytes.toString('latin1')).find(({ label }) =>
    /^[A-Z0-9 ]{1,40}$/.test(label),
  )?.label;
  return label === undefined ? undefined : `contains PEM of type "${label}"`;
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
function whyUnparsable({ text, isComplete }: PemBlock, { message }: Error): string {
  if (!isComplete) return 'it is cut off';
  return text.includes('\n') ? message : 'it has no line breaks; PEM needs them after BEGIN and before END';
}

/**
 * Returns the private key of a PEM file.
 * @throws {TlsError} `ERR_TLS_PEM`. The message never quotes the file.
 */
export function parseKey(path: string, bytes: Buffer): KeyObject {
  const block = pemBlocks(bytes.toString('latin1')).find(isPrivateKey);
  if (block?.label.startsWith('ENCRYPTED') || block?.text.includes('Proc-Type: 4,ENCRYPTED')) {
    throw new TlsError(
      'ERR_TLS_PEM',
      `The private key in "${path}" is protected by a passphrase; store it without one: openssl pkey -in FILE`,
    );
  }
  if (!block?.isComplete) throw new TlsError('ERR_TLS_PEM', `"${path}" ${whyNoKey(bytes)}`);
  try {
    return createPrivateKey(block.text);
  } catch (cause) {
    const why = whyUnparsable(block, cause as Error);
    throw new TlsError('ERR_TLS_PEM', `Cannot parse the private key in "${path}": ${why}`, { cause });
  }
}

/**
 * The longest certificate message that clients based on OpenSSL accept, bytes (`SSL_MAX_CERT_LIST_DEFAULT`): a header
 * of 4 bytes, and up to 5 for each certificate.
 */
const MAX_MESSAGE_BYTES = 100 * 1024;

/**
 * Checks that clients accept the length of the chain, and that each certificate after the first issued one before it.
 * As in clients, plain chains, chains with cross-signed alternatives and repeated certificates pass; a chain in another
 * order does not.
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
    const message = `certificate ${index + 1} of ${chain.length} (${subjectName(issuer)}) did not issue any before it; the order is: server certificate, its issuer, the issuer's issuer`;
    throw new TlsError('ERR_TLS_CHAIN', `The chain in "${path}" is not in order: ${message}`);
  }
}

function isSame(a: X509Certificate, b: X509Certificate): boolean {
  return a.fingerprint256 === b.fingerprint256;
}

/** Whether this issuer signed a certificate. */
export function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  return issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
}

/** The validity of a certificate, epoch ms. */
export interface Validity {
  readonly notBefore: number;
  readonly expiresAt: number;
}

/**
 * When a chain is valid: from the start of the first certificate to the earliest end in the chain. If an issuer has
 * several (cross-signed) certificates, the latest of their ends counts. Roots are ignored, because clients have their
 * own.
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
export function subjectName({ subject }: X509Certificate): string {
  // Undefined for a certificate without a subject, whatever the types say.
  return (subject as string | undefined)?.replaceAll('\n', ', ') ?? 'no subject';
}
