/** Answers requests of kubelet for the certificates of pods, as a signer in the cluster does. */
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';

import type { CertificateSigner } from 'resilient-watcher/testing';

/** The fields of a PodCertificateRequest that a signer needs. */
export interface PodCertificateSpec {
  readonly signerName: string;
  readonly podName: string;
  readonly serviceAccountName: string;
  readonly maxExpirationSeconds: number;
  /** A request of PKCS#10 with an empty subject, DER in base64. */
  readonly stubPKCS10Request: string;
}

/** Times in the JSON of Kubernetes are in whole seconds. */
const timeOf = (epochMs: number): string => `${new Date(epochMs).toISOString().slice(0, 19)}Z`;

/** The status of a request with the decision to issue a certificate. */
export function issued(signer: CertificateSigner, namespace: string, spec: PodCertificateSpec): object {
  const lifetimeMs = spec.maxExpirationSeconds * 1_000;
  const input = Buffer.from(spec.stubPKCS10Request, 'base64');
  const pem = execFileSync('openssl', ['req', '-inform', 'der', '-pubkey', '-noout'], { input });
  const { chain, notBefore, notAfter } = signer.issue({
    uris: [`spiffe://cluster.local/ns/${namespace}/sa/${spec.serviceAccountName}`],
    dnsNames: [`${spec.podName}.${namespace}.pod`],
    publicKey: createPublicKey(pem),
    lifetimeMs,
  });
  const lastTransitionTime = timeOf(Date.now());
  return {
    conditions: [{ type: 'Issued', status: 'True', reason: 'Issued', message: '', lastTransitionTime }],
    certificateChain: chain,
    notBefore: timeOf(notBefore),
    beginRefreshAt: timeOf(notAfter - lifetimeMs / 3),
    notAfter: timeOf(notAfter),
  };
}
