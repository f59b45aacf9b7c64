/** Parses and checks a set of certificate, key and CA bundle. */
import { inspectChain, whyExpired, type Oddities } from './chain.js';
import type { Validity } from './certificates.js';
import { bytesOf, identityOf } from './identity.js';
import { parseCertificates } from './pem.js';
import { TlsCredentials } from './tls-credentials.js';
import { isoTime } from '../core/clock.js';
import { TlsError } from './tls-error.js';
import type { TlsPlaces } from './tls-paths.js';

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
  const credentials = new TlsCredentials({ identity, authorities: isKept ? kept : bundle, revision });
  mustBeUsable(credentials, path);
  if (!identity || !places.cert) return { credentials, warnings: [], until: Infinity };
  checkDates(places.cert.path, credentials, now);
  const warningMs = expiryWarning(credentials, parsing.expiryWarningMs);
  const { warnings, until } = inspectChain(places.cert.path, identity.chain, now, warningMs);
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

/** @throws {TlsError} `ERR_TLS_REFUSED`. */
function mustBeUsable(credentials: TlsCredentials, path: string): void {
  try {
    // This getter makes OpenSSL create the context.
    credentials.secureContext.context satisfies unknown;
  } catch (cause) {
    throw new TlsError('ERR_TLS_REFUSED', `OpenSSL rejects ${path}: ${(cause as Error).message}`, { cause });
  }
}
