/**
 * `certificates.k8s.io/v1`: what is decided about a PodCertificateRequest, as kubelet sends it, and
 * ClusterTrustBundles.
 */
import { X509Certificate } from 'node:crypto';

import type { Clock } from 'resilient-watcher';

import { CertificateSigner } from '../certificate-signer.js';
import { failure, type ApiAnswer } from './api-answer.js';
import type { ObjectCall } from './object-api.js';
import type { ApiObject, ObjectStore } from './object-store.js';
import {
  decided,
  issued,
  refusalOf,
  withDefaults,
  type PodCertificateSpec,
  type PodCertificateStatus,
} from './pod-certificate-request.js';

/** The outcome of a request for a pod certificate. `Pending`: none yet. */
export type PodCertificateOutcome = 'Issued' | 'Denied' | 'Failed' | 'Pending';

const BUNDLES = 'clustertrustbundles.v1.certificates.k8s.io';
const API_VERSION = 'certificates.k8s.io/v1';
const REQUESTS_PATH = /^\/apis\/certificates\.k8s\.io\/v1\/namespaces\/([^/]+)\/podcertificaterequests$/;

export class CertificateApi {
  /** The outcome of further requests. */
  outcome: PodCertificateOutcome = 'Issued';
  readonly signer: CertificateSigner;
  readonly #clock: Clock;
  readonly #store: ObjectStore;

  constructor(clock: Clock, store: ObjectStore) {
    this.#clock = clock;
    this.#store = store;
    this.signer = new CertificateSigner({ name: 'pod-certificates', clock });
  }

  /** @throws {TypeError} for what the API server refuses. */
  putTrustBundle(name: string, trustBundle: string, signerName?: string): void {
    checkTrustBundle(name, trustBundle, signerName);
    const spec = { trustBundle, ...(signerName !== undefined && { signerName }) };
    this.#store.put(BUNDLES, {
      apiVersion: API_VERSION,
      kind: 'ClusterTrustBundle',
      metadata: { name },
      spec,
    });
  }

  removeTrustBundle(name: string): void {
    this.#store.delete(BUNDLES, undefined, name);
  }

  /** Creates a PodCertificateRequest, and decides it; undefined for other requests. @param create as for any object */
  answer(call: ObjectCall, create: (call: ObjectCall) => ApiAnswer | undefined): ApiAnswer | undefined {
    const [, namespace] = REQUESTS_PATH.exec(call.path) ?? [];
    if (namespace === undefined || call.method !== 'POST') return undefined;
    const { metadata, spec, ...rest } = Object(call.body) as Partial<ApiObject> & {
      spec?: PodCertificateSpec;
    };
    if (!spec) return failure(400, 'the body is not a PodCertificateRequest');
    const refusal = refusalOf(spec);
    if (refusal !== undefined)
      return failure(
        422,
        `PodCertificateRequest.certificates.k8s.io "${metadata?.name}" is invalid: ${refusal}`,
      );
    const named = metadata?.name === undefined ? { generateName: 'req-', ...metadata } : metadata;
    const answer = create({ ...call, body: { ...rest, metadata: named, spec: withDefaults(spec) } });
    if (answer?.status !== 201) return answer;
    const request = { ...(answer.body as ApiObject), status: this.#statusOf(namespace, spec) };
    return { status: 201, body: this.#store.put('podcertificaterequests.v1.certificates.k8s.io', request) };
  }

  #statusOf(namespace: string, spec: PodCertificateSpec): PodCertificateStatus {
    const now = this.#clock.now();
    if (this.outcome === 'Pending') return {};
    return this.outcome === 'Issued' ? issued(this.signer, namespace, spec, now) : decided(this.outcome, now);
  }
}

function checkTrustBundle(name: string, trustBundle: string, signerName: string | undefined): void {
  const wrong = (why: string): TypeError => new TypeError(`ClusterTrustBundle '${name}' ${why}`);
  const prefix = signerName?.replace('/', ':');
  if (prefix === undefined && name.includes(':'))
    throw wrong('has no signer, so its name must have no colon');
  if (prefix !== undefined && !(name.startsWith(`${prefix}:`) && name.length > prefix.length + 1))
    throw wrong(`must have a name that begins with '${prefix}:'`);
  const blocks = trustBundle.match(/-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw wrong('must have a certificate');
  if (!blocks.every((block) => new X509Certificate(block).ca))
    throw wrong('must have certificates of authorities only');
  if (new Set(blocks).size < blocks.length) throw wrong('must have each certificate once');
}
