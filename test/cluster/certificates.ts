/** The objects of the test of pod certificates: a pod with a server and clients, and a signer for its certificates. */
import { setTimeout as sleep } from 'node:timers/promises';

import { ApiException, CoreV1Api, CustomObjectsApi, type V1Pod } from '@kubernetes/client-node';
import { CertificateSigner } from '@resilient-watcher/local-api-server';

import {
  issued,
  type PodCertificateSpec,
} from '../../packages/local-api-server/src/local-api-server/pod-certificate-request.js';
import { Namespace } from './namespace.js';
import { restartKubelet, type ClusterSettings } from './settings.js';

const API = { group: 'certificates.k8s.io', version: 'v1' };
const API_VERSION = `${API.group}/${API.version}`;
const REQUESTS = { ...API, plural: 'podcertificaterequests' };
const TRUST_BUNDLES = { ...API, plural: 'clustertrustbundles' };

interface PodCertificateRequest {
  readonly metadata: { readonly name: string };
  readonly spec: PodCertificateSpec;
  readonly status?: { readonly conditions?: readonly unknown[] };
}

/** What the cluster lacks for the test; undefined if nothing. */
export async function missingIn({ kubeConfig }: ClusterSettings): Promise<string | undefined> {
  const objects = kubeConfig.makeApiClient(CustomObjectsApi);
  for (const kind of [REQUESTS, TRUST_BUNDLES]) {
    try {
      await objects.listClusterCustomObject({ ...kind, limit: 1 });
    } catch (error) {
      if (error instanceof ApiException && error.code === 404) return `${kind.plural} of ${API_VERSION}`;
      throw error;
    }
  }
  return undefined;
}

/** The names of the authorities, of the files of their clients, and of their trust bundles. */
export type AuthorityName = 'first' | 'second';

/** The pod, in a namespace of its own. All is removed when it is disposed. */
export class CertificateStage implements AsyncDisposable {
  readonly authorities = {
    first: new CertificateSigner({ name: 'first' }),
    second: new CertificateSigner({ name: 'second' }),
  };
  /** Who signs from now on. */
  signer: AuthorityName = 'first';
  /** How many requests were signed. */
  signed = 0;
  readonly #settings: ClusterSettings;
  readonly #namespace: Namespace;
  readonly #core: CoreV1Api;
  readonly #objects: CustomObjectsApi;
  readonly #end = new AbortController();
  readonly #trusted = new Set<AuthorityName>();
  #signing: Promise<void> = Promise.resolve();
  #touches = 0;

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    this.#namespace = new Namespace(settings.kubeConfig);
    this.#core = settings.kubeConfig.makeApiClient(CoreV1Api);
    this.#objects = settings.kubeConfig.makeApiClient(CustomObjectsApi);
  }

  /** Creates the pod; only the first authority is trusted. */
  async create(): Promise<void> {
    const namespace = this.#namespace.name;
    await this.#namespace.create('restricted');
    await this.trust('first');
    const clients = Object.entries(this.authorities).flatMap(([name, authority]) => [
      [`${name}-ca.pem`, authority.certificate],
      [`${name}.pem`, authority.issue({ commonName: `client of ${name}` }).bundle],
    ]);
    const stringData = Object.fromEntries(clients) as Record<string, string>;
    await this.#core.createNamespacedSecret({
      namespace,
      body: { metadata: { name: 'clients' }, stringData },
    });
    await this.#core.createNamespacedServiceAccount({
      namespace,
      body: { metadata: { name: 'certificates' } },
    });
    this.#signing = this.#sign();
    const body = certificatePod(this.#settings.image, namespace, this.#signerName);
    await this.#core.createNamespacedPod({ namespace, body });
  }

  async trust(name: AuthorityName): Promise<void> {
    const signerName = this.#signerName;
    const metadata = { name: this.#bundleName(name) };
    const spec = { signerName, trustBundle: this.authorities[name].certificate };
    const body = { apiVersion: API_VERSION, kind: 'ClusterTrustBundle', metadata, spec };
    await this.#objects.createClusterCustomObject({ ...TRUST_BUNDLES, body });
    this.#trusted.add(name);
  }

  async distrust(name: AuthorityName): Promise<void> {
    await this.#objects.deleteClusterCustomObject({ ...TRUST_BUNDLES, name: this.#bundleName(name) });
    this.#trusted.delete(name);
  }

  /** Changes a label of the trust bundles: kubelet orders the certificates again, by chance. */
  async reorder(): Promise<void> {
    for (const trusted of this.#trusted) {
      const name = this.#bundleName(trusted);
      const found = (await this.#objects.getClusterCustomObject({ ...TRUST_BUNDLES, name })) as {
        metadata: object;
      };
      const body = {
        ...found,
        metadata: { ...found.metadata, labels: { touched: String((this.#touches += 1)) } },
      };
      await this.#objects.replaceClusterCustomObject({ ...TRUST_BUNDLES, name, body });
    }
  }

  /** Annotates the pod, so that kubelet syncs at once instead of within a minute. */
  async touch(): Promise<void> {
    const where = { namespace: this.#namespace.name, name: 'certificates' };
    const pod = await this.#core.readNamespacedPod(where);
    const touched = String((this.#touches += 1));
    if (pod.metadata) pod.metadata.annotations = { ...pod.metadata.annotations, touched };
    await this.#core.replaceNamespacedPod({ ...where, body: pod });
  }

  restartKubelet(): boolean {
    return restartKubelet(this.#settings);
  }

  /** What the pod has printed so far; empty before it runs, and while kubelet restarts. */
  async lines(): Promise<CertificateLine[]> {
    const where = { namespace: this.#namespace.name, name: 'certificates' };
    try {
      const log = await this.#core.readNamespacedPodLog(where);
      return log
        .split('\n')
        .filter((line) => line.startsWith('{"who"'))
        .map((line) => JSON.parse(line) as CertificateLine);
    } catch (error) {
      if (error instanceof ApiException && [400, 404, 500].includes(error.code)) return [];
      throw error;
    }
  }

  async restarts(): Promise<number | undefined> {
    const where = { namespace: this.#namespace.name, name: 'certificates' };
    return (await this.#core.readNamespacedPod(where)).status?.containerStatuses?.[0]?.restartCount;
  }

  /** Resolves once something holds. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    await this.#namespace.until(what, holds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#signing;
    for (const name of this.#trusted) await this.distrust(name);
    await this.#namespace[Symbol.asyncDispose]();
  }

  /** Of the namespace, so that nobody else's trust bundles and requests are of it. */
  get #signerName(): string {
    return `example.com/${this.#namespace.name}`;
  }

  #bundleName(name: AuthorityName): string {
    return `${this.#signerName.replace('/', ':')}:${name}`;
  }

  /** The signer of the cluster: looks for requests without a decision until the end. */
  async #sign(): Promise<void> {
    const namespace = this.#namespace.name;
    const { signal } = this.#end;
    while (!signal.aborted) {
      const { items } = (await this.#objects.listNamespacedCustomObject({ ...REQUESTS, namespace })) as {
        items: PodCertificateRequest[];
      };
      for (const request of items) {
        if (request.status?.conditions !== undefined || request.spec.signerName !== this.#signerName)
          continue;
        const status = issued(this.authorities[this.signer], namespace, request.spec, Date.now());
        const { name } = request.metadata;
        const body = { ...request, status };
        await this.#objects.replaceNamespacedCustomObjectStatus({ ...REQUESTS, namespace, name, body });
        this.signed += 1;
      }
      await sleep(200, undefined, { signal }).catch(() => {});
    }
  }
}

/** A line of `program/certificates.mjs`. */
export interface CertificateLine {
  readonly event: 'swap' | 'change' | 'rejected' | 'handshakes' | 'died';
  /** Of a swap: whether it has another certificate, key or set of authorities; the authorities as the file has them. */
  readonly isNews?: boolean;
  readonly order?: readonly string[];
  /** Of a change, and of the handshakes: who is trusted. */
  readonly trust?: readonly string[];
  readonly leaf?: string;
  readonly issuer?: string;
  readonly delayMs?: number;
  readonly counts?: Readonly<Record<string, Handshakes>>;
  readonly wrong?: { readonly count: number; readonly examples: readonly unknown[] };
  /** How often the server has set a certificate or its trust. */
  readonly served?: number;
}

/** The requests of the clients of one authority, by how their connection began. */
export interface Handshakes {
  readonly full: number;
  readonly resumed: number;
  /** Answered on a connection that had been open before. */
  readonly kept: number;
  readonly refused: number;
  /** Refused although they offered a session of the time when they were accepted. */
  readonly refusedResumption: number;
  /** During a change of whether the authority is trusted. */
  /** Ended by the removal of another authority. */
  readonly cut: number;
  readonly unjudged: number;
}

export function certificatePod(image: string, namespace: string, signerName: string): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'certificates' },
    spec: {
      serviceAccountName: 'certificates',
      automountServiceAccountToken: false,
      restartPolicy: 'OnFailure',
      terminationGracePeriodSeconds: 5,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'certificates',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['node', 'certificates.mjs'],
          env: [
            { name: 'CREDENTIALS', value: '/cred' },
            { name: 'CLIENTS', value: '/clients' },
            // As the signer names it.
            { name: 'SERVER_NAME', value: `certificates.${namespace}.pod` },
          ],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [
            { name: 'credentials', mountPath: '/cred', readOnly: true },
            { name: 'clients', mountPath: '/clients', readOnly: true },
          ],
        },
      ],
      volumes: [
        {
          name: 'credentials',
          projected: {
            sources: [
              { podCertificate: { signerName, keyType: 'ECDSAP256', credentialBundlePath: 'bundle.pem' } },
              { clusterTrustBundle: { signerName, labelSelector: {}, path: 'ca.pem' } },
            ],
          },
        },
        { name: 'clients', secret: { secretName: 'clients' } },
      ],
    },
  };
}
