/** Parses and checks a set of certificate, key and CA bundle. */
import { inspectChain, whyExpired, type Oddities } from './chain.js';
import { parseCertificates, validityOf, type Validity } from './certificates.js';
import { bytesOf, identityOf } from './identity.js';
import { TlsCredentials } from './tls-credentials.js';
import { isoTime } from '../core/clock.js';
import { TlsError } from './tls-error.js';
import type { TlsPlaces } from './tls-paths.js';

type Trust = Pick<TlsCredentials, 'ca' | 'authorities'>;

interface Parsing {
  /** Epoch ms. */
  readonly now: number;
  /** For messages about the whole set. */
  readonly path: string;
  readonly revision: string | undefined;
  readonly previous: Trust | undefined;
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
export function parseSet(places: TlsPlaces, parsing: Parsing): ParsedSet {
  const { now, path, revision, previous } = parsing;
  for (const place of [places.cert, places.key, places.ca]) if (place) bytesOf(place);
  const identity = identityOf(places);
  const bundle = bundleOf(places.ca);
  const expired = bundle && places.ca && whyExpired(places.ca.path, bundle.authorities, now);
  if (expired !== undefined && !identity) throw new TlsError('ERR_TLS_CA', expired);
  // It verifies no peer, but many servers verify none.
  const trust = expired !== undefined && previous?.ca ? previous : (bundle ?? previous);
  const { ca, authorities } = trust ?? { ca: undefined, authorities: [] };
  const { pair, chain } = identity ?? {};
  const validity = chain ? validityOf(chain[0]) : ALWAYS;
  const credentials = new TlsCredentials({
    ...{ pair, certificate: chain?.[0], ...validity },
    ...{ ca, authorities, revision },
  });
  mustBeUsable(credentials, path);
  if (!chain || !places.cert) return { credentials, warnings: [], until: Infinity };
  checkDates(places.cert.path, validity, now);
  const warningMs = expiryWarning(validity, parsing.expiryWarningMs);
  const { warnings, until } = inspectChain(places.cert.path, chain, now, warningMs);
  if (expired === undefined) return { credentials, warnings, until };
  // The clock may be wrong, and set.
  return { credentials, warnings: [...warnings, expired], until: now };
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

/** @throws {TlsError} `ERR_TLS_CA`. */
function bundleOf(ca: TlsPlaces['ca']): Trust | undefined {
  const bytes = ca && bytesOf(ca);
  // cert-manager writes an empty `ca.crt` if the issuer has no CA; templates add a line break.
  if (!bytes || (ca.mayBeEmpty && bytes.toString('latin1').trim() === '')) return undefined;
  const authorities = parseCertificates(ca.path, bytes, 'ERR_TLS_CA');
  // OpenSSL receives only what was parsed here, so that nothing else is trusted.
  return { ca: Buffer.from(authorities.join('')), authorities };
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
