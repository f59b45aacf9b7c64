/** What smoke.mjs serves: an authority, and three bundles of it, as JSON. */
import { CertificateSigner } from '@resilient-watcher/local-api-server';

export function certificates() {
  const signer = new CertificateSigner();
  const bundles = Array.from({ length: 3 }, () => signer.issue({ dnsNames: ['localhost'] }).bundle);
  return JSON.stringify({ ca: signer.certificate, bundles });
}
