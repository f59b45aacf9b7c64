/**
 * Reads the key and the certificates of a PKCS#12 file (RFC 7292). Node.js loads such a file into a TLS context, but hands
 * out nothing of it, and refuses what is encrypted with RC2, as in the files of cert-manager.
 *
 *     PFX → authenticated safe → contents, each plain or encrypted → bags: a key, plain or encrypted, or a certificate
 */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

import type { Identity } from './certificates.js';
import { childrenOf, Malformed, oidOf, type Element } from './der.js';
import { checkMac, decrypt, Locked } from './password-encryption.js';
import { TlsError } from './tls-error.js';

/** What is in a file. */
interface Pkcs12 {
  /** The first one. */
  readonly key: KeyObject | undefined;
  /** In the order of the file. */
  readonly certificates: readonly X509Certificate[];
}

const [INTEGER, OCTET_STRING, SEQUENCE] = [0x02, 0x04, 0x30];
/** Files have two; each may take a second to decrypt. */
const MAX_CONTENTS = 8;

const DATA = '1.2.840.113549.1.7.1';
const ENCRYPTED_DATA = '1.2.840.113549.1.7.6';
const KEY_BAG = '1.2.840.113549.1.12.10.1.1';
const SHROUDED_KEY_BAG = '1.2.840.113549.1.12.10.1.2';
const CERTIFICATE_BAG = '1.2.840.113549.1.12.10.1.3';

/**
 * Returns the first key of a PKCS#12 file with its certificate, and all other certificates of the file as its chain.
 * @throws {TlsError} `ERR_TLS_PEM`, or `ERR_TLS_MISMATCH` if the file has no key with its certificate.
 * @throws {Locked} if the passphrase does not open it, or it is damaged.
 */
export function parsePkcs12(path: string, bytes: Buffer, passphrase = ''): Identity {
  const { key, certificates } = contentsOf(path, bytes, passphrase);
  const leaf = key && certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (!leaf) {
    const message = `The PKCS#12 file "${path}" has no key with its certificate; certificates in it: ${certificates.length}`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  return { chain: [leaf, ...certificates.filter((certificate) => certificate !== leaf)], key };
}

function contentsOf(path: string, bytes: Buffer, passphrase: string): Pkcs12 {
  try {
    return read(bytes, passphrase);
  } catch (cause) {
    if (cause instanceof Locked) throw cause;
    const message = `Cannot parse the PKCS#12 file "${path}": ${(cause as Error).message}`;
    throw new TlsError('ERR_TLS_PEM', message, { cause });
  }
}

function read(bytes: Buffer, passphrase: string): Pkcs12 {
  const [pfx] = childrenOf(bytes, 1);
  const [version, safe, mac] = childrenOf(pfx?.tag === SEQUENCE ? pfx.content : undefined);
  if (version?.tag !== INTEGER) throw new Malformed('it is not PKCS#12');
  let key: KeyObject | undefined;
  const certificates: X509Certificate[] = [];
  const authenticated = openedBy(passphrase, safe);
  checkMac(mac, authenticated, passphrase);
  const [contents] = childrenOf(authenticated, 1);
  for (const content of childrenOf(contents?.content, MAX_CONTENTS)) {
    const [bags] = childrenOf(openedBy(passphrase, content), 1);
    for (const bag of childrenOf(bags?.content)) {
      const [type, value] = childrenOf(bag.content);
      const [inner] = childrenOf(value?.content, 1);
      const [first, second] = childrenOf(inner?.content);
      const kind = oidOf(type);
      if (kind === KEY_BAG) key ??= keyIn(value?.content);
      if (kind === SHROUDED_KEY_BAG) key ??= keyIn(decrypt(first, second?.content, passphrase));
      if (kind === CERTIFICATE_BAG) certificates.push(new X509Certificate(octetsIn(second)));
    }
  }
  return { key, certificates };
}

/** The bytes in a content, plain or encrypted. */
function openedBy(passphrase: string, contentInfo: Element | undefined): Buffer {
  const [type, value] = childrenOf(contentInfo?.content);
  if (oidOf(type) === DATA) return octetsIn(value);
  if (oidOf(type) !== ENCRYPTED_DATA) throw new Malformed('it is protected by a key, not by a passphrase');
  const [encryptedData] = childrenOf(value?.content, 1);
  const [, encrypted] = childrenOf(encryptedData?.content);
  const [, algorithm, text] = childrenOf(encrypted?.content);
  return decrypt(algorithm, text?.content, passphrase);
}

/** The content of the string in an element with an explicit tag. */
function octetsIn(explicit: Element | undefined): Buffer {
  const [octets] = childrenOf(explicit?.content, 1);
  if (octets?.tag !== OCTET_STRING) throw new Malformed('it is BER, or damaged');
  return octets.content;
}

function keyIn(der: Buffer | undefined): KeyObject {
  try {
    return createPrivateKey({ key: der ?? Buffer.alloc(0), format: 'der', type: 'pkcs8' });
  } catch (cause) {
    // What a wrong passphrase decrypts may happen to look well padded.
    throw new Locked({ cause });
  }
}
