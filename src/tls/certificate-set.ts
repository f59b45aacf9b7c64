/** CA bundles as sets of certificates: their order, repetitions and text between them do not matter. */
import { hash, type X509Certificate } from 'node:crypto';

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
