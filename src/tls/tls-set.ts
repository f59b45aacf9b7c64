/** Parses and checks a set of certificate, key, CA bundle and revocation lists. */
import { isoTime } from '../core/ports/clock.js';
import { FileSnapshot } from '../fs/snapshot.js';
import type { Identity, Validity } from './certificates.js';
import { inspectChain, UNREADABLE, whyExpired, type Oddities } from './chain.js';
import { Locked } from './encrypted-key.js';
import { hasPrivateKey, parseCertificates, parseKey, parseLists } from './pem.js';
import { inspectLists } from './revocation.js';
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

/** A set, and what some peers reject about it. */
export interface ParsedSet extends Oddities {
  readonly credentials: TlsCredentials;
  /** Why it must not be used, until its dates allow it. */
  readonly refusal?: TlsError | undefined;
}

const NOTHING_ODD: Oddities = { warnings: [], from: -Infinity, until: Infinity };

/**
 * A set without a CA bundle keeps the previous one, because with the roots of Node.js instead, a peer with a certificate
 * of any public authority would be trusted. In the same way, one without revocation lists keeps the previous ones.
 * @throws {TlsError} if the set is not complete or not usable.
 */
export function parseSet({ ca, crl, ...places }: TlsPlaces, parsing: Parsing): ParsedSet {
  const { now, path, revision, previous } = parsing;
  const identity = identityOf(places);
  const bundle = ca && parseCertificates(ca.path, bytesOf(ca), 'ERR_TLS_CA');
  const expired = bundle && whyExpired(ca.path, bundle, now);
  const kept = previous?.authorities ?? [];
  // An expired one verifies no peer, but many servers verify none.
  const isKept = !bundle || (expired !== undefined && identity && kept.length > 0);
  const authorities = isKept ? kept : bundle;
  const lists = crl ? parseLists(crl.path, bytesOf(crl)) : previous?.revocation?.lists;
  const revocation = lists && inspectLists(crl?.path ?? path, lists, authorities, now);
  const credentials = credentialsOf({ identity, authorities, revocation, revision }, path);
  const listed = revocation ?? NOTHING_ODD;
  // The clock may be wrong, and set.
  const from = Math.max(expired?.at ?? -Infinity, listed.from);
  if (!identity || !places.cert) {
    const refusal = expired && new TlsError('ERR_TLS_CA', expired.message);
    return { ...listed, credentials, from, refusal };
  }
  const unusable = datesOf(places.cert.path, credentials, now);
  if (unusable) return { credentials, warnings: [], ...unusable };
  const warningMs = expiryWarning(credentials, parsing.expiryWarningMs);
  const odd = inspectChain(places.cert.path, identity.chain, now, warningMs);
  const warnings = [
    ...odd.warnings,
    ...(expired ? [expired.message] : []),
    ...weaknessOf(credentials, path),
    ...listed.warnings,
  ];
  const until = Math.min(odd.until, listed.until);
  return { credentials, warnings, from: Math.max(from, odd.from), until };
}

function weaknessOf({ weakness }: TlsCredentials, path: string): string[] {
  const fix = 'it is accepted only with ciphers of a lower level, such as DEFAULT@SECLEVEL=0';
  return weakness === undefined ? [] : [`OpenSSL rejects ${path} by default: ${weakness}; ${fix}`];
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
function identityOf({ cert, key, passphrase }: TlsPlaces): Identity | undefined {
  if (!cert || !key) return undefined;
  const secret = passphrase && passphraseIn(passphrase);
  try {
    return fromPem(cert, key, secret);
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
    const fix = 'give the file of the passphrase: { cert, key, passphrase }';
    return new TlsError(
      'ERR_TLS_PEM',
      `The private key in "${key.path}" is protected by a passphrase; ${fix}`,
    );
  }
  const message = `The passphrase in "${passphrase.path}" does not open the private key in "${key.path}"; one of them may be older, or damaged`;
  return new TlsError('ERR_TLS_MISMATCH', message, { cause });
}

/** Editors and `echo` end a file with a line break. The option of that name in Node.js is the passphrase itself. */
export function passphraseIn(place: TlsPlace): string {
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
  const bytes = Buffer.isBuffer(file) ? file : FileSnapshot.bytesOf(file);
  if (bytes) return bytes;
  const message = `"${path}" has ${(file as FileSnapshot).size} bytes; files of certificates, keys and revocation lists have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}

/** How long before its end a certificate that has not been replaced is reported, ms. */
export function expiryWarning({ notBefore, expiresAt }: Validity, given: number | undefined): number {
  return given ?? (expiresAt - notBefore) / 6;
}

/** Why a certificate must not be used now, and how long that stays so. */
function datesOf(
  path: string,
  { notBefore, expiresAt }: Validity,
  now: number,
): Pick<Required<ParsedSet>, 'refusal' | 'from' | 'until'> | undefined {
  if (Number.isNaN(notBefore + expiresAt)) {
    const refusal = new TlsError('ERR_TLS_PEM', `The certificate in "${path}" ${UNREADABLE}`);
    return { refusal, from: -Infinity, until: Infinity };
  }
  if (expiresAt <= now)
    return { refusal: expiredError(path, { expiresAt }), from: expiresAt, until: Infinity };
  if (notBefore <= now) return undefined;
  const message = `The certificate in "${path}" is not valid before ${isoTime(notBefore)}`;
  return { refusal: new TlsError('ERR_TLS_NOT_YET_VALID', message), from: -Infinity, until: notBefore };
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
