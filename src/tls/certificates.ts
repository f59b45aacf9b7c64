/** Parses certificates and keys with OpenSSL, and refuses those that would fail in a handshake. */
import { createPrivateKey, hash, X509Certificate, type KeyObject } from 'node:crypto';

import { TlsError, type TlsErrorCode } from './tls-error.js';
import { parseGmtDate } from '../core/clock.js';
import { isCertificate, isPrivateKey, pemBlocks, type PemBlock } from './pem.js';

/**
 * Returns the certificates of a PEM file, at least one, in the order of the file.
 * @throws {TlsError} with the given code.
 */
export function parseCertificates(path: string, bytes: Buffer, code: TlsErrorCode): Chain {
  const blocks = pemBlocks(bytes.toString('latin1')).filter(isCertificate);
  if (!blocks.some(({ isComplete }) => isComplete)) {
    throw new TlsError(code, `"${path}" ${whyNo('certificate', bytes)}`);
  }
  const certificates = blocks.map((block, index) => {
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
  return certificates as unknown as Chain;
}

/** Describes what a file contains instead, for example if it is cut off. Quotes only labels, never contents. */
function whyNo(wanted: string, bytes: Buffer): string {
  if (bytes.length === 0) return 'is empty';
  if (isUtf16(bytes)) return `is UTF-16; PEM is ASCII: iconv -f UTF-16 -t UTF-8 FILE`;
  const label = pemBlocks(bytes.toString('latin1')).find(({ label }) =>
    /^[A-Z0-9 ]{1,40}$/.test(label),
  )?.label;
  if (label !== undefined) return `contains PEM of type "${label}", but no complete ${wanted}`;
  return `contains no ${wanted} in PEM; convert DER to PEM: openssl ${wanted === 'certificate' ? 'x509' : 'pkey'} -inform der -in FILE; PKCS#12 is given as { pfx, passphrase }`;
}

/** As some editors and shells write text, with a byte order mark or without. */
function isUtf16(bytes: Buffer): boolean {
  const dashes = Buffer.from('-----BEGIN ', 'utf16le');
  return bytes.includes(dashes) || bytes.includes(Buffer.from(dashes).swap16());
}

/** The reason why OpenSSL cannot parse a PEM block. */
function whyUnparsable({ text, isComplete }: PemBlock, { message }: Error): string {
  if (!isComplete) return 'it is cut off';
  return text.includes('\n') ? message : 'it has no line breaks; PEM needs them after BEGIN and before END';
}

/** A private key, and as the PEM that others receive: without a passphrase. */
export interface PrivateKey {
  readonly key: KeyObject;
  readonly pem: string;
}

export interface Passphrase {
  readonly path: string;
  readonly text: string;
}

/**
 * Returns the private key of a PEM file.
 * @throws {TlsError} `ERR_TLS_PEM`, or `ERR_TLS_MISMATCH` if the passphrase does not open it. The message never quotes a
 * file.
 */
export function parseKey(path: string, bytes: Buffer, passphrase?: Passphrase): PrivateKey {
  const block = pemBlocks(bytes.toString('latin1')).find(isPrivateKey);
  if (!block?.isComplete) throw new TlsError('ERR_TLS_PEM', `"${path}" ${whyNo('private key', bytes)}`);
  const isLocked = block.label.startsWith('ENCRYPTED') || block.text.includes('Proc-Type: 4,ENCRYPTED');
  if (!isLocked) return { key: parsedKey(path, block), pem: `${block.text}\n` };
  if (!passphrase) throw lockedError(path);
  try {
    return withPem(createPrivateKey({ key: block.text, passphrase: passphrase.text }));
  } catch (cause) {
    throw lockedError(path, passphrase, cause);
  }
}

function parsedKey(path: string, block: PemBlock): KeyObject {
  try {
    return createPrivateKey(block.text);
  } catch (cause) {
    const why = whyUnparsable(block, cause as Error);
    throw new TlsError('ERR_TLS_PEM', `Cannot parse the private key in "${path}": ${why}`, { cause });
  }
}

export function withPem(key: KeyObject): PrivateKey {
  return { key, pem: key.export({ type: 'pkcs8', format: 'pem' }) as string };
}

/** A key that no passphrase opens, or not this one, which may belong to another key: its own may follow. */
export function lockedError(path: string, passphrase?: Passphrase, cause?: unknown): TlsError {
  if (!passphrase) {
    const fix = 'give the file of the passphrase: { cert, key, passphrase } or { pfx, passphrase }';
    return new TlsError('ERR_TLS_PEM', `The private key in "${path}" is protected by a passphrase; ${fix}`);
  }
  const message = `The passphrase in "${passphrase.path}" does not open the private key in "${path}"; one of them may be older, or damaged`;
  return new TlsError('ERR_TLS_MISMATCH', message, { cause });
}

/** The validity of a certificate, epoch ms. */
export interface Validity {
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** The certificates of a file, at least one: that of the server or client comes first. */
export type Chain = readonly [X509Certificate, ...X509Certificate[]];

export function validityOf({ validFrom, validTo }: X509Certificate): Validity {
  return { notBefore: parseGmtDate(validFrom), expiresAt: parseGmtDate(validTo) };
}

/** The same certificates without repetitions. */
export function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate])).values()];
}

/** A key that is equal for equal sets: their order, repetitions and text between them do not matter. */
export function digestOfSet(certificates: readonly X509Certificate[]): string {
  const fingerprints = new Set(certificates.map(({ fingerprint256 }) => fingerprint256));
  return hash('sha256', [...fingerprints].sort().join());
}

export function subjectName({ subject }: X509Certificate): string {
  return onOneLine(subject) ?? 'no subject';
}

export function issuerName({ issuer }: X509Certificate): string {
  return onOneLine(issuer) ?? 'no issuer';
}

/** @param name undefined for an empty one, whatever the types of Node.js say */
function onOneLine(name: string | undefined): string | undefined {
  return name?.replaceAll('\n', ', ');
}
