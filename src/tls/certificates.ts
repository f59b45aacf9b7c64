/** What certificates say, alone and as a set. */
import { hash, type KeyObject, type X509Certificate } from 'node:crypto';

import { parseGmtDate } from '../core/ports/clock.js';

/** The validity of a certificate, epoch ms. */
export interface Validity {
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** The certificates of a file, at least one: that of the server or client comes first. */
export type Chain = readonly [X509Certificate, ...X509Certificate[]];

/** The key is that of the first certificate. */
export interface Identity {
  readonly chain: Chain;
  readonly key: KeyObject;
}

export function validityOf({ validFrom, validTo }: X509Certificate): Validity {
  return { notBefore: parseGmtDate(validFrom), expiresAt: parseGmtDate(validTo) };
}

/** The same certificates without repetitions. */
export function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate])).values()];
}

/** The same for certificates in another order. */
export function digestOfSet(certificates: readonly X509Certificate[]): string {
  const fingerprints = certificates.map(({ fingerprint256 }) => fingerprint256);
  return hash('sha256', fingerprints.sort().join());
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
