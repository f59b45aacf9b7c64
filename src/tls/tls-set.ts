/** Parses and checks a set of certificate, key and CA bundle. */
import { isoTime } from '../core/ports/clock.js';
import { FileSnapshot } from '../fs/snapshot.js';
import type { Identity, Validity } from './certificates.js';
import { inspectChain, whyExpired, type Oddities } from './chain.js';
import { Locked } from './password-encryption.js';
import { hasPrivateKey, parseCertificates, parseKey } from './pem.js';
import { parsePkcs12 } from './pkcs12.js';
import { TlsCredentials, type TlsCredentialsFields } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import type { TlsPlace, TlsPlaces } from './tls-paths.js';

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
export const MAX_BYTES = 1_048_576;

interface Parsing {
  /** Epoch ms. */
  readonly now: number;
  /** For messages about the whole set. */
  readonly path: string;
  readonly revision: string | undefined;
  readonly previous: TlsCredentials | undefined;
  /** See `TlsFilesOptions`. */
  readonly expiryWarningMs: number | undefined;
}

/** A set that is used, and what some peers reject about it. */
export interface ParsedSet extends Oddities {
  readonly credentials: TlsCredentials;
}

/**
 * A set without a CA bundle keeps the previous one, because with the roots of Node.js instead, a peer with a certificate
 * of any public authority would be trusted.
 * @throws {TlsError} if the set is not complete, not usable, or not valid now.
 */
export function parseSet({ ca, ...places }: TlsPlaces, parsing: Parsing): ParsedSet {
  const { now, path, revision, previous } = parsing;
  const identity = identityOf(places);
  const bundle = ca && parseCertificates(ca.path, bytesOf(ca), 'ERR_TLS_CA');
  const expired = bundle && whyExpired(ca.path, bundle, now);
  if (expired !== undefined && !identity) throw new TlsError('ERR_TLS_CA', expired);
  const kept = previous?.authorities ?? [];
  // An expired one verifies no peer, but many servers verify none.
  const isKept = !bundle || (expired !== undefined && kept.length > 0);
  const credentials = credentialsOf({ identity, authorities: isKept ? kept : bundle, revision }, path);
  if (!identity || !places.cert) return { credentials, warnings: [], until: Infinity };
  checkDates(places.cert.path, credentials, now);
  const warningMs = expiryWarning(credentials, parsing.expiryWarningMs);
  const { warnings, until } = inspectChain(places.cert.path, identity.chain, now, warningMs);
  if (expired === undefined) return { credentials, warnings, until };
  // The clock may be wrong, and set.
  return { credentials, warnings: [...warnings, expired], until: now };
}

/** @throws {TlsError} `ERR_TLS_REFUSED`. */
function credentialsOf(fields: TlsCredentialsFields, path: string): TlsCredentials {
  try {
    return new TlsCredentials(fields);
  } catch (cause) {
    throw new TlsError('ERR_TLS_REFUSED', `OpenSSL rejects ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** @throws {TlsError} if the key does not match the certificate, or the passphrase the key. */
function identityOf({ cert, key, isPfx, passphrase }: TlsPlaces): Identity | undefined {
  if (!cert || !key) return undefined;
  const secret = passphrase && passphraseIn(passphrase);
  try {
    return isPfx ? parsePkcs12(cert.path, bytesOf(cert), secret) : fromPem(cert, key, secret);
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
function bytesOf({ path, file }: TlsPlace): Buffer {
  if (!file) throw new TlsError('ERR_TLS_MISSING', `There is no file "${path}"`);
  const bytes = FileSnapshot.bytesOf(file);
  if (bytes) return bytes;
  const message = `"${path}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}

/** How long before its end a certificate that has not been replaced is reported, ms. */
export function expiryWarning({ notBefore, expiresAt }: Validity, given: number | undefined): number {
  return given ?? (expiresAt - notBefore) / 6;
}

function checkDates(path: string, { notBefore, expiresAt }: Validity, now: number): void {
  if (expiresAt <= now) throw expiredError(path, { expiresAt });
  if (notBefore <= now) return;
  const message = `The certificate in "${path}" is not valid before ${isoTime(notBefore)}`;
  throw new TlsError('ERR_TLS_NOT_YET_VALID', message);
}

/** @param cause why there is no newer one */
export function expiredError(
  path: string,
  { expiresAt }: Pick<Validity, 'expiresAt'>,
  cause?: Error,
): TlsError {
  const message = `The certificate in "${path}" expired at ${isoTime(expiresAt)}`;
  return new TlsError('ERR_TLS_EXPIRED', message, cause && { cause });
}
