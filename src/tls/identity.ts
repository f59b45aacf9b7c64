/** Parses the certificate chain and the key of a set, in PEM or PKCS#12. */
import type { KeyObject } from 'node:crypto';

import { sharedBytesOf } from '../fs/snapshot.js';
import type { Chain } from './certificates.js';
import { hasPrivateKey, Locked, parseCertificates, parseKey } from './pem.js';
import { readPkcs12 } from './pkcs12.js';
import { TlsError } from './tls-error.js';
import type { TlsPlace, TlsPlaces } from './tls-paths.js';

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
export const MAX_BYTES = 1_048_576;

/** The key is that of the first certificate. */
export interface Identity {
  readonly chain: Chain;
  readonly key: KeyObject;
}

/** @throws {TlsError} if the key does not match the certificate, or the passphrase the key. */
export function identityOf({ cert, key, isPfx, passphrase }: TlsPlaces): Identity | undefined {
  if (!cert || !key) return undefined;
  const secret = passphrase && passphraseIn(passphrase);
  try {
    return isPfx ? fromPkcs12(cert, secret) : fromPem(cert, key, secret);
  } catch (error) {
    throw error instanceof Locked ? lockedError(key, passphrase, error) : error;
  }
}

function fromPem(cert: TlsPlace, key: TlsPlace, passphrase: string | undefined): Identity {
  const [certBytes, keyBytes] = [bytesOf(cert), bytesOf(key)];
  if (cert.path === key.path && !hasPrivateKey(keyBytes)) {
    const message = `"${key.path}" is a file without a private key; TlsFiles takes a directory, a credential bundle, or { cert, key, ca }`;
    throw new TlsError('ERR_TLS_PEM', message);
  }
  const chain = parseCertificates(cert.path, certBytes, 'ERR_TLS_PEM');
  const privateKey = parseKey(key.path, keyBytes, passphrase);
  // `setSecureContext()` accepts an RSA key with an EC certificate; then every handshake fails.
  if (!chain[0].checkPrivateKey(privateKey)) {
    const message = `The private key in "${key.path}" is not that of the first certificate in "${cert.path}"`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  return { chain, key: privateKey };
}

function fromPkcs12(place: TlsPlace, passphrase: string | undefined): Identity {
  const { key, certificates } = pkcs12In(place, passphrase);
  const leaf = key && certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (!leaf) {
    const message = `The PKCS#12 file "${place.path}" has no key with its certificate; certificates in it: ${certificates.length}`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  return { chain: [leaf, ...certificates.filter((certificate) => certificate !== leaf)], key };
}

function pkcs12In(place: TlsPlace, passphrase = ''): ReturnType<typeof readPkcs12> {
  const bytes = bytesOf(place);
  try {
    return readPkcs12(bytes, passphrase);
  } catch (cause) {
    if (cause instanceof Locked) throw cause;
    const message = `Cannot parse the PKCS#12 file "${place.path}": ${(cause as Error).message}`;
    throw new TlsError('ERR_TLS_PEM', message, { cause });
  }
}

/** The passphrase may belong to another key: its own may follow. */
function lockedError(key: TlsPlace, passphrase: TlsPlace | undefined, cause: Locked): TlsError {
  if (!passphrase) {
    const fix = 'give the file of the passphrase: { cert, key, passphrase } or { pfx, passphrase }';
    return new TlsError(
      'ERR_TLS_PEM',
      `The private key in "${key.path}" is protected by a passphrase; ${fix}`,
    );
  }
  const message = `The passphrase in "${passphrase.path}" does not open the private key in "${key.path}"; one of them may be older, or damaged`;
  return new TlsError('ERR_TLS_MISMATCH', message, { cause });
}

/** Editors and `echo` end a file with a line break. The option of that name in Node.js is the passphrase itself. */
function passphraseIn(place: TlsPlace): string {
  if (!place.file) {
    const message = `There is no file "${place.path}", where TlsFiles reads the passphrase; the option "passphrase" is a path`;
    throw new TlsError('ERR_TLS_MISSING', message);
  }
  return bytesOf(place)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

/** @throws {TlsError} `ERR_TLS_MISSING`, `ERR_TLS_PEM`. */
export function bytesOf({ path, file }: TlsPlace): Buffer {
  if (!file) throw new TlsError('ERR_TLS_MISSING', `There is no file "${path}"`);
  const bytes = sharedBytesOf(file);
  if (bytes) return bytes;
  const message = `"${path}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}
