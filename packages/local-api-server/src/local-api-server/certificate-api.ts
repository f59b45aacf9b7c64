/** `certificates.k8s.io/v1`: PodCertificateRequest, as kubelet sends it, and ClusterTrustBundle. */
import { randomUUID, X509Certificate } from 'node:crypto';

import type { Clock } from 'resilient-watcher';
import { kubernetesTime } from 'resilient-watcher/internal';

import { CertificateSigner } from '../certificate-signer.js';
import { failure, type ApiAnswer } from './api-answer.js';
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

interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

interface Metadata {
  readonly name?: string;
  readonly generateName?: string;
}

const GROUP = '/apis/certificates.k8s.io/v1';
const API_VERSION = 'certificates.k8s.io/v1';
const REQUEST_PATH =
  /^\/apis\/certificates\.k8s\.io\/v1\/namespaces\/([^/]+)\/podcertificaterequests(?:\/([^/]+))?$/;

export class CertificateApi {
  /** The outcome of further requests. */
  outcome: PodCertificateOutcome = 'Issued';
  readonly signer: CertificateSigner;
  readonly #clock: Clock;
  readonly #requests = new Map<string, object>();
  readonly #bundles = new Map<string, object>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.signer = new CertificateSigner({ name: 'pod-certificates', clock });
  }

  /** @throws {TypeError} for what the API server refuses. */
  putTrustBundle(name: string, trustBundle: string, signerName?: string): void {
    checkTrustBundle(name, trustBundle, signerName);
    const spec = { trustBundle, ...(signerName !== undefined && { signerName }) };
    this.#bundles.set(name, this.#object('ClusterTrustBundle', { name }, { spec }));
  }

  removeTrustBundle(name: string): void {
    this.#bundles.delete(name);
  }

  /** Undefined for paths outside this API group. */
  answer({ method, path, body }: ApiCall): ApiAnswer | undefined {
    const [, namespace, name] = REQUEST_PATH.exec(path) ?? [];
    if (namespace !== undefined) {
      if (method === 'POST' && name === undefined) return this.#create(namespace, body);
      return read(
        this.#requests,
        'PodCertificateRequest',
        name === undefined ? undefined : `${namespace}/${name}`,
      );
    }
    const bundles = `${GROUP}/clustertrustbundles`;
    if (path === bundles) return read(this.#bundles, 'ClusterTrustBundle', undefined);
    if (path.startsWith(`${bundles}/`))
      return read(this.#bundles, 'ClusterTrustBundle', path.slice(bundles.length + 1));
    return undefined;
  }

  #create(namespace: string, body: unknown): ApiAnswer {
    const { metadata, spec } = Object(body) as { metadata?: Metadata; spec?: PodCertificateSpec };
    if (!spec) return failure(400, 'the body is not a PodCertificateRequest');
    const { name = `${metadata?.generateName ?? 'req-'}${randomUUID().slice(0, 5)}` } = metadata ?? {};
    const refusal = refusalOf(spec);
    if (refusal !== undefined)
      return failure(422, `PodCertificateRequest.certificates.k8s.io "${name}" is invalid: ${refusal}`);
    const request = this.#object(
      'PodCertificateRequest',
      { name, namespace },
      { spec: withDefaults(spec), status: this.#statusOf(namespace, spec) },
    );
    this.#requests.set(`${namespace}/${name}`, request);
    return { status: 201, body: request };
  }

  #statusOf(namespace: string, spec: PodCertificateSpec): PodCertificateStatus {
    const now = this.#clock.now();
    if (this.outcome === 'Pending') return {};
    return this.outcome === 'Issued' ? issued(this.signer, namespace, spec, now) : decided(this.outcome, now);
  }

  #object(kind: string, names: object, rest: object): object {
    const metadata = { ...names, uid: randomUUID(), creationTimestamp: kubernetesTime(this.#clock.now()) };
    return { apiVersion: API_VERSION, kind, metadata, ...rest };
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

function read(objects: ReadonlyMap<string, object>, kind: string, key: string | undefined): ApiAnswer {
  if (key === undefined) {
    const list = { apiVersion: API_VERSION, kind: `${kind}List`, metadata: { resourceVersion: '1' } };
    return { status: 200, body: { ...list, items: [...objects.values()] } };
  }
  const object = objects.get(key);
  return object ? { status: 200, body: object } : failure(404, `"${key}" not found`);
}
