/**
 * What only some clients reject about a chain. It works for all others, so none of this keeps a set from being used:
 *
 * | in the chain                             | who rejects it                            |
 * |------------------------------------------|-------------------------------------------|
 * | an issuer that is not valid now          | clients that find no other path to a root |
 * | no certificate that has issued the first | clients that do not have its issuer       |
 * | more than 100 KiB                        | clients that use OpenSSL, such as Node.js |
 */
import type { X509Certificate } from 'node:crypto';

import { isoTime } from '../core/ports/clock.js';
import { distinct, issuerName, subjectName, validityOf, type Chain } from './certificates.js';

/** What is odd about a set that is used nevertheless, and how long that stays so. */
export interface Oddities {
  readonly warnings: readonly string[];
  /** Epoch ms; `-Infinity` if it would have been so at any time before: the clock may be set. */
  readonly from: number;
  /** Epoch ms; `Infinity` if no date changes it. */
  readonly until: number;
}

/** The default of OpenSSL for the certificates of a peer, bytes. */
const MAX_LIST_BYTES = 102_400;
/** As many as OpenSSL follows; a hostile file may have thousands. */
const MAX_ISSUERS = 100;
const MAX_NAMED = 3;
const ADVICE = 'clients that find no other path to a root reject the chain';
/** Of a certificate. */
export const UNREADABLE = 'has a date that cannot be read';

/** @param expiryWarningMs how long before its end an issuer is named that ends before the first certificate. */
export function inspectChain(path: string, chain: Chain, now: number, expiryWarningMs = 0): Oddities {
  const [leaf, ...rest] = chain;
  const issuers = distinct(rest).slice(0, MAX_ISSUERS);
  const warnings = [...issuerWarnings(path, leaf, issuers), ...sizeWarnings(path, chain)];
  const end = validityOf(leaf).expiresAt;
  let [from, until] = [-Infinity, Infinity];
  // Clients have roots of their own.
  for (const issuer of issuers.filter((issuer) => !isRoot(issuer))) {
    const { notBefore, expiresAt } = validityOf(issuer);
    if (Number.isNaN(notBefore + expiresAt)) {
      warnings.push(`${nameOf(issuer)} in the chain of "${path}" ${UNREADABLE}; ${ADVICE}`);
      continue;
    }
    const soonAt = expiresAt < end ? expiresAt - expiryWarningMs : expiresAt;
    for (const moment of [notBefore, soonAt, expiresAt]) {
      if (moment > now && moment < end) until = Math.min(until, moment);
      if (moment <= now) from = Math.max(from, moment);
    }
    if (notBefore <= now && soonAt > now) continue;
    const when = notBefore > now ? `is not valid before ${isoTime(notBefore)}` : expiryOf(expiresAt, now);
    warnings.push(`${nameOf(issuer)} in the chain of "${path}" ${when}; ${ADVICE}`);
  }
  return { warnings, from, until };
}

/** Since when and why a CA bundle verifies nobody; undefined if one of its certificates has not expired. */
export function whyExpired(
  path: string,
  authorities: readonly X509Certificate[],
  now: number,
): { readonly at: number; readonly message: string } | undefined {
  const ends = authorities.map((authority) => validityOf(authority).expiresAt);
  const end = Math.max(...ends);
  const last = authorities[ends.indexOf(end)];
  if (!last || end > now) return undefined;
  const which = `the last one, ${subjectName(last)}, at ${isoTime(end)}`;
  const message = `Every certificate in the CA bundle "${path}" has expired, ${which}; it verifies no peer`;
  return { at: end, message };
}

function expiryOf(expiresAt: number, now: number): string {
  return expiresAt <= now
    ? `expired at ${isoTime(expiresAt)}`
    : `expires at ${isoTime(expiresAt)}, before the first certificate`;
}

function issuerWarnings(path: string, leaf: X509Certificate, issuers: readonly X509Certificate[]): string[] {
  const authorities = issuers.filter((issuer) => issuer.ca || isRoot(issuer));
  if (issuers.length === 0 || [leaf, ...authorities].some((issuer) => isIssuedBy(leaf, issuer))) return [];
  const names = issuers.slice(0, MAX_NAMED).map(nameOf);
  if (issuers.length > MAX_NAMED) names.push('…');
  const found = `The chain of "${path}" has no authority that has issued ${nameOf(leaf)}, but ${names.join('; ')}`;
  return [`${found}; clients that do not have its issuer reject the chain`];
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  if (!certificate.checkIssued(issuer)) return false;
  try {
    return certificate.verify(issuer.publicKey);
  } catch {
    // A key of a kind that this OpenSSL does not know; clients may.
    return true;
  }
}

function isRoot({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

function sizeWarnings(path: string, chain: Chain): string[] {
  const bytes = chain.reduce((sum, { raw }) => sum + raw.length, 0);
  if (bytes <= MAX_LIST_BYTES) return [];
  return [
    `The chain of "${path}" has ${chain.length} certificates of ${bytes} bytes; clients that use OpenSSL reject more than ${MAX_LIST_BYTES}`,
  ];
}

/** With the issuer, because an authority that several others have signed has several certificates. */
function nameOf(certificate: X509Certificate): string {
  return `${subjectName(certificate)} (issued by ${issuerName(certificate)})`;
}
