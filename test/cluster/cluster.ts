import { randomBytes } from 'node:crypto';

import { ApiException, CoreV1Api, KubeConfig, RbacAuthorizationV1Api } from '@kubernetes/client-node';

import { account, configMap, observerPod, role, roleBinding, secret } from './objects.js';

/** How to reach a cluster, and with which image; undefined, with the reason printed, when that is not said. */
export function clusterSettings(
  env: NodeJS.ProcessEnv = process.env,
): { image: string; kubeConfig: KubeConfig } | undefined {
  const image = env['E2E_IMAGE'];
  const path = env['KUBECONFIG'];
  if (!image || !path) {
    console.warn(`Skipped: no cluster: ${path ? 'E2E_IMAGE' : 'KUBECONFIG'} is not set`);
    return undefined;
  }
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(path);
  return { image, kubeConfig };
}

/** A namespace of its own with the objects of the test. Removed when it is disposed, with all that is in it. */
export class ClusterStage implements AsyncDisposable {
  readonly namespace = `resilient-watcher-${randomBytes(4).toString('hex')}`;
  readonly #core: CoreV1Api;
  readonly #rbac: RbacAuthorizationV1Api;

  constructor(kubeConfig: KubeConfig) {
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
    this.#rbac = kubeConfig.makeApiClient(RbacAuthorizationV1Api);
  }

  /** Makes the namespace, the objects and, of them, the pod. What fails leaves nothing behind once this is disposed. */
  async create(image: string, options: { readonly hostNetwork?: boolean } = {}): Promise<void> {
    const { namespace } = this;
    await this.#core.createNamespace({ body: { metadata: { name: namespace } } });
    await this.#core.createNamespacedServiceAccount({ namespace, body: account });
    await this.#rbac.createNamespacedRole({ namespace, body: role });
    await this.#rbac.createNamespacedRoleBinding({ namespace, body: roleBinding });
    await this.#core.createNamespacedConfigMap({ namespace, body: configMap(0) });
    await this.#core.createNamespacedSecret({ namespace, body: secret(0) });
    await this.#core.createNamespacedPod({ namespace, body: observerPod(image, namespace, options) });
  }

  /** Replaces both objects, and touches the pod, so that kubelet looks at once instead of within a minute. */
  async publish(update: number): Promise<void> {
    const { namespace } = this;
    await this.#core.replaceNamespacedConfigMap({ namespace, name: 'config', body: configMap(update) });
    await this.#core.replaceNamespacedSecret({ namespace, name: 'secret', body: secret(update) });
    const pod = await this.#core.readNamespacedPod({ namespace, name: 'observers' });
    if (pod.metadata) pod.metadata.annotations = { ...pod.metadata.annotations, update: String(update) };
    await this.#core.replaceNamespacedPod({ namespace, name: 'observers', body: pod });
  }

  /** What a container has printed so far; empty before it runs. */
  async log(container: string): Promise<string> {
    const { namespace } = this;
    try {
      return await this.#core.readNamespacedPodLog({ namespace, name: 'observers', container });
    } catch (error) {
      if (error instanceof ApiException && (error.code === 400 || error.code === 404)) return '';
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#core.deleteNamespace({ name: this.namespace });
    } catch (error) {
      if (!(error instanceof ApiException && error.code === 404)) throw error;
    }
  }
}
