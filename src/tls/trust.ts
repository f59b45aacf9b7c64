/** CA bundles as sets of certificates: their order, repetitions and text between them do not matter. */
import { hash, X509Certificate } from 'node:crypto';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';

import { hasIssued } from './certificates.js';

/** The part of a TLS connection that describes its peer. */
export type Peer = Pick<TLSSocket, 'authorized' | 'getPeerCertificate'>;

/** Longer than any chain in use; OpenSSL's own limit is 100. */
const MAX_DEPTH = 10;

/** The same certificates without repetitions. */
export function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate])).values()];
}

/** A key that is equal for equal sets. */
export function digestOfSet(certificates: readonly X509Certificate[]): string {
  const fingerprints = new Set(certificates.map(({ fingerprint256 }) => fingerprint256));
  return hash('sha256', [...fingerprints].sort().join());
}

/** The certificates that are no longer among `current`. */
export function removedFrom(
  previous: readonly X509Certificate[],
  current: readonly X509Certificate[],
): X509Certificate[] {
  const kept = new Set(current.map(({ fingerprint256 }) => fingerprint256));
  return previous.filter(({ fingerprint256 }) => !kept.has(fingerprint256));
}

/** How long a request of a peer that is no longer trusted may take. */
export const DISTRUSTED_MS = 30_000;

export type IsDistrusted = (peer: Peer) => boolean;

/** Tells the peers that only removed authorities have verified; undefined if none was removed. */
export function distrustOf(
  previous: readonly X509Certificate[],
  current: readonly X509Certificate[],
): IsDistrusted | undefined {
  if (removedFrom(previous, current).length === 0) return undefined;
  return (peer) => peer.authorized && !leadsTo(chainOf(peer), current);
}

/**
 * Whether signatures lead from the first certificate to a root among `authorities`. The rest of the chain are the other
 * certificates that the peer has sent. Dates and purposes are not checked, because the handshake did that.
 */
export function leadsTo(
  [leaf, ...sent]: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  const issuers = distinct([...sent.slice(0, MAX_DEPTH), ...authorities]);
  const trusted = new Set(authorities.map(({ fingerprint256 }) => fingerprint256));
  const seen = new Set<string>();
  const leads = (certificate: X509Certificate, depth: number): boolean => {
    const { fingerprint256, subject, issuer } = certificate;
    if (trusted.has(fingerprint256) && subject === issuer) return true;
    if (depth === 0 || seen.has(fingerprint256)) return false;
    seen.add(fingerprint256);
    return issuers.some((candidate) => hasIssued(candidate, certificate) && leads(candidate, depth - 1));
  };
  return leaf !== undefined && leads(leaf, MAX_DEPTH);
}

/**
 * The certificates that the peer of a connection has sent, its own first, perhaps with the root. For a resumed session,
 * only the first is known.
 */
export function chainOf(socket: Peer): X509Certificate[] {
  const chain: X509Certificate[] = [];
  // Not `getPeerX509Certificate()`, because after one call the next one lacks the issuers.
  let next: Partial<DetailedPeerCertificate> | undefined = socket.getPeerCertificate(true);
  while (next?.raw && chain.length < MAX_DEPTH) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return distinct(chain);
}
