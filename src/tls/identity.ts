/** Parses the certificate chain and the key of a set, in PEM or PKCS#12. */
import { sharedBytesOf } from '../fs/snapshot.js';
import {
  lockedError,
  parseCertificates,
  parseKey,
  withPem,
  type Chain,
  type Passphrase,
  type PrivateKey,
} from './certificates.js';
import { isCertificate, isPrivateKey, pemBlocks } from './pem.js';
import { Locked } from './password-encryption.js';
import { readPkcs12 } from './pkcs12.js';
import { TlsError } from './tls-error.js';
import type { TlsPlace, TlsPlaces } from './tls-paths.js';

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
export const MAX_BYTES = 1_048_576;

interface Identity {
  readonly chain: Chain;
  readonly pair: { readonly cert: Buffer; readonly key: Buffer };
}

/** @throws {TlsError} if the key does not match the certificate, or the passphrase the key. */
export function identityOf({ cert, key, isPfx, passphrase: secret }: TlsPlaces): Identity | undefined {
  if (!cert || !key) return undefined;
  const passphrase = secret && passphraseIn(secret);
  return isPfx ? fromPkcs12(cert, passphrase) : fromPem(cert, key, passphrase);
}

function fromPem(cert: TlsPlace, key: TlsPlace, passphrase: Passphrase | undefined): Identity {
  const [certBytes, keyBytes] = [bytesOf(cert), bytesOf(key)];
  const isBundle = cert.path === key.path;
  if (isBundle && !pemBlocks(keyBytes.toString('latin1')).some(isPrivateKey)) {
    const message = `"${key.path}" is a file without a private key; TlsFiles takes a directory, a credential bundle, or { cert, key, ca }`;
    throw new TlsError('ERR_TLS_PEM', message);
  }
  const chain = parseCertificates(cert.path, certBytes, 'ERR_TLS_PEM');
  const privateKey = parseKey(key.path, keyBytes, passphrase);
  // `setSecureContext()` accepts an RSA key with an EC certificate; then every handshake fails.
  if (!chain[0].checkPrivateKey(privateKey.key)) {
    const message = `The private key in "${key.path}" is not that of the first certificate in "${cert.path}"`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  // Without the key, which may be in the same file.
  const blocks = pemBlocks(certBytes.toString('latin1')).filter(isCertificate);
  return withBytes(chain, blocks.map(({ text }) => `${text}\n`).join(''), privateKey);
}

function fromPkcs12(place: TlsPlace, passphrase: Passphrase | undefined): Identity {
  const { key, certificates } = pkcs12In(place, passphrase);
  const leaf = key && certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (!leaf) {
    const message = `The PKCS#12 file "${place.path}" has no key with its certificate; certificates in it: ${certificates.length}`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  const chain: Chain = [leaf, ...certificates.filter((certificate) => certificate !== leaf)];
  return withBytes(chain, chain.join(''), withPem(key));
}

function pkcs12In(place: TlsPlace, passphrase: Passphrase | undefined): ReturnType<typeof readPkcs12> {
  const bytes = bytesOf(place);
  try {
    return readPkcs12(bytes, passphrase?.text ?? '');
  } catch (cause) {
    if (cause instanceof Locked) throw lockedError(place.path, passphrase, cause);
    const message = `Cannot parse the PKCS#12 file "${place.path}": ${(cause as Error).message}`;
    throw new TlsError('ERR_TLS_PEM', message, { cause });
  }
}

function withBytes(chain: Chain, cert: string, { pem }: PrivateKey): Identity {
  return { chain, pair: { cert: Buffer.from(cert, 'latin1'), key: Buffer.from(pem, 'latin1') } };
}

/** Editors and `echo` end a file with a line break. The option of that name in Node.js is the passphrase itself. */
function passphraseIn(place: TlsPlace): Passphrase {
  if (!place.file) {
    const message = `There is no file "${place.path}", where TlsFiles reads the passphrase; the option "passphrase" is a path`;
    throw new TlsError('ERR_TLS_MISSING', message);
  }
  return {
    path: place.path,
    text: bytesOf(place)
      .toString('utf8')
      .replace(/\r?\n$/, ''),
  };
}

/** @throws {TlsError} `ERR_TLS_MISSING`, `ERR_TLS_PEM`. */
export function bytesOf({ path, file }: TlsPlace): Buffer {
  if (!file) throw new TlsError('ERR_TLS_MISSING', `There is no file "${path}"`);
  const bytes = sharedBytesOf(file);
  if (bytes) return bytes;
  const message = `"${path}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}
