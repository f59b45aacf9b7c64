import { X509Certificate } from 'node:crypto';

import type { CertificatePair } from './certificates.js';

/** The keys of a Secret of type `kubernetes.io/tls`. */
export function secretOf({ cert, key }: CertificatePair, ca?: string): Record<string, string> {
  return { 'tls.crt': cert, 'tls.key': key, ...(ca !== undefined && { 'ca.crt': ca }) };
}

export function fingerprintOf({ cert }: CertificatePair): string {
  return new X509Certificate(cert).fingerprint256;
}
