import { execFileSync } from 'node:child_process';

import { CertificateSigner } from '@resilient-watcher/local-api-server';

/** What kubelet sends to request a certificate for a pod, with a new key. */
export function podCertificateRequest(more: object = {}): { metadata: object; spec: object } {
  const csr = execFileSync(
    'openssl',
    'req -new -newkey ed25519 -nodes -keyout /dev/null -subj / -outform der'.split(' '),
    { stdio: 'pipe' },
  );
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'pod-uid' };
  return {
    metadata: { generateName: 'req-', ownerReferences: [owner] },
    spec: {
      signerName: 'example.com/signer',
      podName: 'web-0',
      podUID: 'pod-uid',
      serviceAccountName: 'web',
      serviceAccountUID: 'account-uid',
      nodeName: 'node-1',
      nodeUID: 'node-uid',
      stubPKCS10Request: csr.toString('base64'),
      ...more,
    },
  };
}

/** Requests that the API server refuses as invalid, by the field that it names. */
export const REFUSED_REQUESTS: readonly (readonly [field: string, more: object])[] = [
  ['spec.podUID', { podUID: '' }],
  ['spec.nodeName', { nodeName: '' }],
  ['spec.maxExpirationSeconds', { maxExpirationSeconds: 60 }],
  ['spec.maxExpirationSeconds', { maxExpirationSeconds: 7_862_401 }],
  ['spec.maxExpirationSeconds', { signerName: 'kubernetes.io/one', maxExpirationSeconds: 86_401 }],
  ['spec.stubPKCS10Request', { stubPKCS10Request: 'AAAA' }],
];

/** ClusterTrustBundles that the API server refuses. */
export function refusedTrustBundles(
  certificate: string,
): readonly (readonly [name: string, trustBundle: string, signerName?: string])[] {
  return [
    ['one', certificate, 'example.com/signer'],
    ['example.com:other:one', certificate, 'example.com/signer'],
    ['example.com:signer:', certificate, 'example.com/signer'],
    ['example.com:signer:one', certificate],
    ['none', ''],
    ['twice', certificate + certificate],
    ['leaf', new CertificateSigner().issue().chain],
  ];
}
