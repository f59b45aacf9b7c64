/** Parses and checks a set of certificate, key and CA bundle. */
import { parseCertificates, parseKey, validityOf, type Validity } from './certificates.js';
import { isCertificate, isPrivateKey, pemBlocks } from './pem.js';
import { TlsCredentials } from './tls-credentials.js';
import { isoTime } from '../core/clock.js';
import { sharedBytesOf } from '../fs/snapshot.js';
import { TlsError } from './tls-error.js';
import type { TlsPlace, TlsPlaces } from './tls-paths.js';

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
export const MAX_BYTES = 1_048_576;

type Trust = Pick<TlsCredentials, 'ca' | 'authorities'>;

/**
 * A set without a CA bundle keeps the previous one, because with the roots of Node.js instead, a peer with a certificate
 * of any public authority would be trusted.
 * @param now epoch ms
 * @throws {TlsError} if the set is not complete, not usable, or not valid now.
 */
export function parseSet(
  places: TlsPlaces,
  now: number,
  path: string,
  revision: string | undefined,
  previous: Trust | undefined,
): TlsCredentials {
  for (const place of [places.cert, places.key, places.ca]) if (place) bytesOf(place);
  const trust = trustOf(places.ca, now) ?? previous ?? { ca: undefined, authorities: [] };
  const identity = identityOf(places);
  const { ca, authorities } = trust;
  const credentials = new TlsCredentials({ ...identity, ca, authorities, revision });
  mustBeUsable(credentials, path);
  if (places.cert) checkDates(places.cert.path, identity, now);
  return credentials;
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

/** @throws {TlsError} `ERR_TLS_CA` if the bundle cannot be used, or each of its certificates has expired. */
function trustOf(
  ca: (TlsPlace & { readonly mayBeEmpty?: boolean }) | undefined,
  now: number,
): Trust | undefined {
  const bytes = ca && bytesOf(ca);
  // cert-manager writes an empty `ca.crt` if the issuer has no CA; templates add a line break.
  if (!bytes || (ca.mayBeEmpty && bytes.toString('latin1').trim() === '')) return undefined;
  const authorities = parseCertificates(ca.path, bytes, 'ERR_TLS_CA');
  const expiresAt = Math.max(...authorities.map((authority) => validityOf([authority]).expiresAt));
  if (expiresAt <= now) {
    const message = `Every certificate in the CA bundle "${ca.path}" has expired`;
    throw new TlsError('ERR_TLS_CA', message);
  }
  // OpenSSL receives only what was parsed here, so that nothing else is trusted.
  return { ca: Buffer.from(authorities.join('')), authorities };
}

/** A checked certificate chain and its key. */
interface Identity extends Validity, Pick<TlsCredentials, 'certificate'> {
  readonly pair: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

/** @throws {TlsError} if the key does not match the certificate. */
function identityOf({ cert, key }: TlsPlaces): Identity {
  if (!cert || !key) return { pair: undefined, certificate: undefined, ...ALWAYS };
  const [certBytes, keyBytes] = [bytesOf(cert), bytesOf(key)];
  const isBundle = cert.path === key.path;
  if (isBundle && !pemBlocks(keyBytes.toString('latin1')).some(isPrivateKey)) {
    const message = `"${key.path}" is a file without a private key; TlsFiles takes a directory, a credential bundle, or { cert, key, ca }`;
    throw new TlsError('ERR_TLS_PEM', message);
  }
  const chain = parseCertificates(cert.path, certBytes, 'ERR_TLS_PEM');
  const [certificate, ...issuers] = chain;
  const privateKey = parseKey(key.path, keyBytes);
  // `setSecureContext()` accepts an RSA key with an EC certificate; then every handshake fails.
  if (!certificate?.checkPrivateKey(privateKey)) {
    const message = `The private key in "${key.path}" is not that of the first certificate in "${cert.path}"`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  const pair = { cert: only(certBytes, isCertificate), key: only(keyBytes, isPrivateKey) };
  return { pair, certificate, ...validityOf([certificate, ...issuers]) };
}

/** The blocks of one kind, so that the key is not passed on with the chain. */
function only(bytes: Buffer, accept: typeof isCertificate): Buffer {
  const blocks = pemBlocks(bytes.toString('latin1')).filter(accept);
  return Buffer.from(blocks.map(({ text }) => `${text}\n`).join(''), 'latin1');
}

/** @throws {TlsError} `ERR_TLS_MISSING`, `ERR_TLS_PEM`. */
function bytesOf({ path, file }: TlsPlace): Buffer {
  if (!file) throw new TlsError('ERR_TLS_MISSING', `There is no file "${path}"`);
  const bytes = sharedBytesOf(file);
  if (bytes) return bytes;
  const message = `"${path}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}

/** @throws {TlsError} `ERR_TLS_REFUSED`. */
function mustBeUsable(credentials: TlsCredentials, path: string): void {
  try {
    // This getter makes OpenSSL create the context.
    credentials.secureContext.context satisfies unknown;
  } catch (cause) {
    throw new TlsError('ERR_TLS_REFUSED', `OpenSSL rejects ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** A CA bundle alone has no expiry date. */
const ALWAYS: Validity = { notBefore: -Infinity, expiresAt: Infinity };
