/** CA bundles as sets of certificates: their order, repetitions and text between them do not matter. */
import { hash, type X509Certificate } from 'node:crypto';

interface Trust {
  readonly authorities: readonly X509Certificate[];
}

/** The same certificates without repetitions. */
export function distinct(certificates: readonly X509Certificate[]): X509Certificate[] {
  return [...new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate])).values()];
}

/** A key that is equal for equal sets. */
export function digestOfSet(certificates: readonly X509Certificate[]): string {
  const fingerprints = new Set(certificates.map(({ fingerprint256 }) => fingerprint256));
  return hash('sha256', [...fingerprints].sort().join());
}

/** Whether a CA was removed: then every connection made before has to end. */
export function isCaRemoved(previous: Trust | undefined, current: Trust): boolean {
  // Without a bundle, the roots of Node.js were trusted.
  if (previous?.authorities.length === 0) return current.authorities.length > 0;
  const kept = new Set(current.authorities.map(({ fingerprint256 }) => fingerprint256));
  return previous?.authorities.some(({ fingerprint256 }) => !kept.has(fingerprint256)) ?? false;
}
