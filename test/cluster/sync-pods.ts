/** `sync-pods.yaml`, applied to a namespace of its own. */
import {
  AppsV1Api,
  CoreV1Api,
  KubernetesObjectApi,
  PatchStrategy,
  RbacAuthorizationV1Api,
  type V1ClusterRole,
  type V1ClusterRoleBinding,
  type V1Deployment,
  type V1Pod,
} from '@kubernetes/client-node';

import { manifestsIn, type Manifest } from './manifests.js';
import { ifThere, Namespace } from './namespace.js';
import type { ClusterSettings } from './settings.js';

const NAME = 'sync-pods';

/**
 * The manifest with the image of the test, for the pods of one namespace, with Secrets. What belongs to the whole cluster
 * has the name of the namespace that the controller runs in.
 */
export function syncPodsManifests(own: string, synced: string, image: string): Manifest[] {
  const manifests = manifestsIn('sync-pods.yaml').filter(({ kind }) => kind !== 'Namespace');
  for (const manifest of manifests) {
    const metadata = manifest.metadata as { name: string; namespace?: string };
    if (metadata.namespace === undefined) metadata.name = own;
    else metadata.namespace = own;
    if (manifest.kind === 'ClusterRole') {
      (manifest as unknown as V1ClusterRole).rules?.[0]?.resources?.push('secrets');
    } else if (manifest.kind === 'ClusterRoleBinding') {
      const { roleRef, subjects = [] } = manifest as unknown as V1ClusterRoleBinding;
      roleRef.name = own;
      for (const subject of subjects) subject.namespace = own;
    } else if (manifest.kind === 'Deployment') {
      const [container] = (manifest as unknown as V1Deployment).spec?.template.spec?.containers ?? [];
      if (!container) throw new Error('the Deployment has no container');
      container.image = image;
      container.args = (container.args ?? []).flatMap((flag) =>
        flag === '--all-namespaces' ? [`--namespace=${synced}`, '--secrets'] : [flag],
      );
    }
  }
  return manifests;
}

/** The controller in the cluster. Removed when it is disposed. */
export class SyncPods implements AsyncDisposable {
  readonly #namespace: Namespace;
  readonly #settings: ClusterSettings;
  readonly #core: CoreV1Api;
  readonly #apps: AppsV1Api;

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    this.#namespace = new Namespace(settings.kubeConfig);
    this.#core = settings.kubeConfig.makeApiClient(CoreV1Api);
    this.#apps = settings.kubeConfig.makeApiClient(AppsV1Api);
  }

  /** Resolves once both replicas are ready. */
  async create(synced: string): Promise<void> {
    const { kubeConfig, image } = this.#settings;
    await this.#namespace.create('restricted');
    const objects = KubernetesObjectApi.makeApiClient(kubeConfig);
    for (const manifest of syncPodsManifests(this.#namespace.name, synced, image)) {
      await objects.patch(
        manifest,
        undefined,
        undefined,
        'resilient-watcher-test',
        true,
        PatchStrategy.ServerSideApply,
      );
    }
    await this.#untilReady(2);
  }

  /** Resolves once so many replicas are ready, and no other runs. */
  async scale(replicas: number): Promise<void> {
    const namespace = this.#namespace.name;
    const scale = await this.#apps.readNamespacedDeploymentScale({ namespace, name: NAME });
    scale.spec = { replicas };
    await this.#apps.replaceNamespacedDeploymentScale({ namespace, name: NAME, body: scale });
    await this.#untilReady(replicas);
  }

  /** Kills one replica; the Deployment replaces it. */
  async kill(): Promise<void> {
    const namespace = this.#namespace.name;
    const name = (await this.#pods())[0]?.metadata?.name ?? '';
    await this.#core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
  }

  /** What the replicas that run have printed. */
  async log(): Promise<string> {
    const namespace = this.#namespace.name;
    const logs = (await this.#pods()).map(({ metadata }) =>
      this.#core.readNamespacedPodLog({ namespace, name: metadata?.name ?? '' }),
    );
    return (await Promise.all(logs)).join('');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const rbac = this.#settings.kubeConfig.makeApiClient(RbacAuthorizationV1Api);
    const { name } = this.#namespace;
    await ifThere(() => rbac.deleteClusterRoleBinding({ name }));
    await ifThere(() => rbac.deleteClusterRole({ name }));
    await this.#namespace[Symbol.asyncDispose]();
  }

  async #pods(): Promise<V1Pod[]> {
    return (await this.#core.listNamespacedPod({ namespace: this.#namespace.name })).items;
  }

  async #untilReady(replicas: number): Promise<void> {
    await this.#namespace.until(`${replicas} replicas of sync-pods are ready`, async () => {
      const ready = (await this.#pods()).map(({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      );
      return ready.length === replicas && ready.every(Boolean);
    });
  }
}
