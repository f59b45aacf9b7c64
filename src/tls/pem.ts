/** Reads certificates and keys in PEM with OpenSSL. Text between the blocks is ignored, as OpenSSL does. */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

import type { Chain } from './certificates.js';
import { SEQUENCE } from './der.js';
import { checkEffort, isEncrypted, Locked } from './encrypted-key.js';
import { parseList, type RevocationList } from './revocation.js';
import { TlsError, type TlsErrorCode } from './tls-error.js';

/**
 * Returns the certificates of a PEM file, at least one, in the order of the file.
 * @throws {TlsError} with the given code.
 */
export function parseCertificates(path: string, bytes: Buffer, code: TlsErrorCode): Chain {
  const blocks = pemBlocks(bytes, CERTIFICATE);
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

/**
 * Returns the private key of a PEM file.
 * @throws {TlsError} `ERR_TLS_PEM`. The message never quotes a file.
 * @throws {Locked} if it is protected by another passphrase.
 */
export function parseKey(path: string, bytes: Buffer, passphrase?: string): KeyObject {
  const [block] = pemBlocks(bytes, PRIVATE_KEY);
  if (!block?.isComplete) throw new TlsError('ERR_TLS_PEM', `"${path}" ${whyNo('private key', bytes)}`);
  const isTraditional = block.text.includes('Proc-Type:');
  const der = Buffer.from(isTraditional ? '' : (block.text.split(DASHES)[2] ?? ''), 'base64');
  let isLocked = false;
  try {
    // OpenSSL would look for another one in it, whose effort cannot be seen.
    if (isTraditional && GENERIC.test(block.label)) throw new Error('a key with DEK-Info is not PKCS#8');
    // By its bytes: OpenSSL 3.5 opens it with the label PRIVATE KEY as well.
    if (isEncrypted(der)) checkEffort(der);
    isLocked = isTraditional || isEncrypted(der);
    if (isTraditional || !isLocked) return createPrivateKey({ key: block.text, passphrase });
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8', passphrase });
  } catch (cause) {
    if (isLocked) throw new Locked({ cause });
    const why = whyUnparsable(block, cause as Error);
    throw new TlsError('ERR_TLS_PEM', `Cannot parse the private key in "${path}": ${why}`, { cause });
  }
}

/**
 * Returns the revocation lists of a file, at least one: PEM, or one in DER, as authorities publish them.
 * @throws {TlsError} `ERR_TLS_CRL`.
 */
export function parseLists(path: string, bytes: Buffer): RevocationList[] {
  const blocks = pemBlocks(bytes, REVOCATION_LIST);
  const isDer = bytes[0] === SEQUENCE;
  if (!isDer && !blocks.some(({ isComplete }) => isComplete)) {
    throw new TlsError('ERR_TLS_CRL', `"${path}" ${whyNo('revocation list', bytes)}`);
  }
  const encoded = isDer
    ? [bytes]
    : blocks.map(({ text }) => Buffer.from(text.split(DASHES)[2] ?? '', 'base64'));
  return encoded.map((der, index) => {
    const list = parseList(der);
    if (list && (isDer || blocks[index]?.isComplete)) return list;
    const which = encoded.length > 1 ? `list ${index + 1} of ${encoded.length}` : 'the revocation list';
    throw new TlsError('ERR_TLS_CRL', `Cannot parse ${which} in "${path}": it is cut off, or damaged`);
  });
}

export function hasPrivateKey(bytes: Buffer): boolean {
  return pemBlocks(bytes, PRIVATE_KEY).length > 0;
}

/** Describes what a file contains instead, for example if it is cut off. Quotes only labels, never contents. */
function whyNo(wanted: string, bytes: Buffer): string {
  if (bytes.length === 0) return 'is empty';
  if (isUtf16(bytes)) return `is UTF-16; PEM is ASCII: iconv -f UTF-16 -t UTF-8 FILE`;
  const [block] = pemBlocks(bytes, PRINTABLE);
  if (block) return `contains PEM of type "${block.label}", but no complete ${wanted}`;
  if (wanted === 'revocation list') return `contains no ${wanted}`;
  return `contains no ${wanted} in PEM; convert DER to PEM: openssl ${wanted === 'certificate' ? 'x509' : 'pkey'} -inform der -in FILE; a keystore needs the option "parse"`;
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

interface PemBlock {
  /** Such as `CERTIFICATE`. */
  readonly label: string;
  /** The block with its first and last line, or the part of it that exists. */
  readonly text: string;
  readonly isComplete: boolean;
}

/** All labels that OpenSSL knows. */
const CERTIFICATE = /^(?:X509 |TRUSTED )?CERTIFICATE$/;
const REVOCATION_LIST = /^X509 CRL$/;
/** Of any format: PKCS#8, RSA or elliptic curve. */
const PRIVATE_KEY = /PRIVATE KEY$/;
/** Of PKCS#8. */
const GENERIC = /^(?:ENCRYPTED )?PRIVATE KEY$/;
const PRINTABLE = /^[A-Z0-9 ]{1,40}$/;

const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';
const BASE64 = /^\s[\w+/=\s]*$/;
/** In Latin-1. */
const BYTE_ORDER_MARK = 'ï»¿';

/** Finds the blocks with such a label, in linear time, whatever the file contains. */
function pemBlocks(bytes: Buffer, wanted: RegExp): PemBlock[] {
  const parts = bytes.toString('latin1').split(BEGIN);
  return parts.slice(1).flatMap((part, index) => {
    const [label = ''] = part.slice(0, 64).split(DASHES, 1);
    const last = `${END}${label}${DASHES}`;
    const end = part.indexOf(END);
    const isComplete = end !== -1 && part.startsWith(last, end);
    const isWhole = isComplete && BASE64.test(part.slice(label.length + DASHES.length, end));
    if (!wanted.test(label) || (!isWhole && isInComment(parts[index] ?? ''))) return [];
    return [{ label, text: `${BEGIN}${isComplete ? part.slice(0, end + last.length) : part}`, isComplete }];
  });
}

/** Whether other text comes before a BEGIN on its line; files may be joined without a line break. */
function isInComment(before: string): boolean {
  const line = before.slice(before.lastIndexOf('\n') + 1).trim();
  return line !== '' && line !== BYTE_ORDER_MARK && !line.endsWith(DASHES);
}
