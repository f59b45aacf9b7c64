import { createPublicKey, type KeyObject } from 'node:crypto';

import { CertificationRequest } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { kubernetesTime } from 'resilient-watcher/internal';

import type { CertificateSigner } from '../certificate-signer.js';

/** The fields that kubelet sends to request the certificate of a pod. */
export interface PodCertificateSpec {
  readonly signerName: string;
  readonly podName: string;
  readonly podUID: string;
  readonly serviceAccountName: string;
  readonly serviceAccountUID: string;
  readonly nodeName: string;
  readonly nodeUID: string;
  readonly maxExpirationSeconds?: number;
  /** A request of PKCS#10 with an empty subject, DER in base64. */
  readonly stubPKCS10Request: string;
  readonly unverifiedUserAnnotations?: Readonly<Record<string, string>>;
}

/** The status of a PodCertificateRequest with a signer's decision. */
export interface PodCertificateStatus {
  readonly conditions?: readonly object[];
  readonly certificateChain?: string;
  readonly notBefore?: string;
  readonly beginRefreshAt?: string;
  readonly notAfter?: string;
}

const REQUIRED = [
  'signerName',
  'podName',
  'podUID',
  'serviceAccountName',
  'serviceAccountUID',
  'nodeName',
  'nodeUID',
] as const satisfies readonly (keyof PodCertificateSpec)[];

const DAY_SECONDS = 86_400;
/** The API server's bounds of `maxExpirationSeconds`. */
const [SHORTEST_SECONDS, LONGEST_SECONDS] = [3_600, 7_862_400];

/** Why the API server would refuse a request; undefined if it would not. */
export function refusalOf(spec: Partial<PodCertificateSpec>): string | undefined {
  const missing = REQUIRED.find((name) => typeof spec[name] !== 'string' || spec[name] === '');
  if (missing !== undefined) return `spec.${missing}: Required value`;
  const longest = /^([^/]*\.)?kubernetes\.io\//.test(spec.signerName ?? '') ? DAY_SECONDS : LONGEST_SECONDS;
  const { maxExpirationSeconds: seconds = DAY_SECONDS } = spec;
  if (!(seconds >= SHORTEST_SECONDS && seconds <= longest))
    return `spec.maxExpirationSeconds: Invalid value: ${seconds}: must be in the range [${SHORTEST_SECONDS}, ${longest}]`;
  try {
    publicKeyOf(spec.stubPKCS10Request ?? '');
  } catch {
    return 'spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR';
  }
  return undefined;
}

/** Fills in the default that the API server stores. */
export function withDefaults(
  spec: PodCertificateSpec,
): PodCertificateSpec & { maxExpirationSeconds: number } {
  return { maxExpirationSeconds: DAY_SECONDS, ...spec };
}

/** A signer's decision without a certificate. */
export function decided(type: string, now: number): PodCertificateStatus {
  const lastTransitionTime = kubernetesTime(now);
  return { conditions: [{ type, status: 'True', reason: type, message: '', lastTransitionTime }] };
}

/** A signer's decision with a certificate. */
export function issued(
  signer: CertificateSigner,
  namespace: string,
  spec: PodCertificateSpec,
  now: number,
): PodCertificateStatus {
  // The signers of Kubernetes itself issue certificates for at most a day.
  const lifetimeMs = Math.min(withDefaults(spec).maxExpirationSeconds, DAY_SECONDS) * 1_000;
  const { chain, notBefore, notAfter } = signer.issue({
    uris: [`spiffe://cluster.local/ns/${namespace}/sa/${spec.serviceAccountName}`],
    dnsNames: [`${spec.podName}.${namespace}.pod`],
    publicKey: publicKeyOf(spec.stubPKCS10Request),
    lifetimeMs,
  });
  return {
    ...decided('Issued', now),
    certificateChain: chain,
    notBefore: kubernetesTime(notBefore),
    beginRefreshAt: kubernetesTime(notAfter - lifetimeMs / 3),
    notAfter: kubernetesTime(notAfter),
  };
}

/** @throws {Error} if it is no request of PKCS#10. */
function publicKeyOf(stubPKCS10Request: string): KeyObject {
  const request = AsnConvert.parse(Buffer.from(stubPKCS10Request, 'base64'), CertificationRequest);
  const key = Buffer.from(AsnConvert.serialize(request.certificationRequestInfo.subjectPKInfo));
  return createPublicKey({ key, format: 'der', type: 'spki' });
}
