import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  RbacAuthorizationV1Api,
  StorageV1Api,
} from '@kubernetes/client-node';

import { csiDaemonSet, csiDriver, csiObserverPod, CSI_OBSERVER, DRIVER } from './csi.js';
import { account, configMap, observerPod, role, roleBinding, secret } from './objects.js';

/** What the environment says of the cluster. */
interface ClusterSettings {
  readonly kubeConfig: KubeConfig;
  readonly image: string;
  readonly hostNetwork: boolean;
  /** The image of `csi-node-driver-registrar`; undefined: no CSI driver, which needs a privileged pod. */
  readonly registrar: string | undefined;
  /** A shell command that restarts the kubelet of the observers' node; undefined: it is not restarted. */
  readonly restartKubelet: string | undefined;
}

/** How to reach a cluster, and with which image; undefined, with the reason printed, when that is not said. */
export function clusterSettings(env: NodeJS.ProcessEnv = process.env): ClusterSettings | undefined {
  const image = env['E2E_IMAGE'];
  const path = env['KUBECONFIG'];
  if (!image || !path) {
    console.warn(`Skipped: no cluster: ${path ? 'E2E_IMAGE' : 'KUBECONFIG'} is not set`);
    return undefined;
  }
  // An empty variable is as good as none.
  const setting = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(path);
  return {
    kubeConfig,
    image,
    hostNetwork: env['E2E_HOST_NETWORK'] === '1',
    registrar: setting('E2E_CSI_REGISTRAR'),
    restartKubelet: setting('E2E_RESTART_KUBELET'),
  };
}

/** A namespace of its own with the objects of the test. Removed when it is disposed, with all that is in it. */
export class ClusterStage implements AsyncDisposable {
  readonly namespace = `resilient-watcher-${randomBytes(4).toString('hex')}`;
  readonly #settings: ClusterSettings;
  readonly #core: CoreV1Api;
  readonly #rbac: RbacAuthorizationV1Api;
  readonly #apps: AppsV1Api;
  readonly #storage: StorageV1Api;
  #hasDriver = false;

  constructor(settings: ClusterSettings) {
    const { kubeConfig } = settings;
    this.#settings = settings;
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
    this.#rbac = kubeConfig.makeApiClient(RbacAuthorizationV1Api);
    this.#apps = kubeConfig.makeApiClient(AppsV1Api);
    this.#storage = kubeConfig.makeApiClient(StorageV1Api);
  }

  /** Creates the namespace, the objects and the pods. What fails leaves nothing behind once this is disposed. */
  async create(): Promise<void> {
    const { namespace } = this;
    const { image, registrar, hostNetwork } = this.#settings;
    // Without this label clusters that enforce Pod Security refuse the driver.
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
    await this.#core.createNamespace({
      body: { metadata: { name: namespace, ...(registrar && { labels }) } },
    });
    await this.#core.createNamespacedServiceAccount({ namespace, body: account });
    await this.#rbac.createNamespacedRole({ namespace, body: role });
    await this.#rbac.createNamespacedRoleBinding({ namespace, body: roleBinding });
    await this.#core.createNamespacedConfigMap({ namespace, body: configMap(0) });
    await this.#core.createNamespacedSecret({ namespace, body: secret(0) });
    await this.#core.createNamespacedPod({ namespace, body: observerPod(image, namespace, { hostNetwork }) });
    if (registrar === undefined) return;
    await this.#storage.createCSIDriver({ body: csiDriver });
    this.#hasDriver = true;
    await this.#apps.createNamespacedDaemonSet({ namespace, body: csiDaemonSet(image, registrar) });
    // kubelet tries to mount until the driver has registered.
    await this.#core.createNamespacedPod({ namespace, body: csiObserverPod(image, namespace) });
  }

  /** Replaces both objects, and touches the pod, so that kubelet looks at once instead of within a minute. */
  async publish(update: number): Promise<void> {
    await this.#replace(update, {});
  }

  /** Replaces both objects by ones with the same data. */
  async rewrite(update: number): Promise<void> {
    await this.#replace(update, { rewritten: String(update) });
  }

  async #replace(update: number, labels: Readonly<Record<string, string>>): Promise<void> {
    const { namespace } = this;
    await this.#core.replaceNamespacedConfigMap({
      namespace,
      name: 'config',
      body: configMap(update, labels),
    });
    await this.#core.replaceNamespacedSecret({ namespace, name: 'secret', body: secret(update, labels) });
    const pod = await this.#core.readNamespacedPod({ namespace, name: 'observers' });
    const annotations = { ...labels, update: String(update) };
    if (pod.metadata) pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations };
    await this.#core.replaceNamespacedPod({ namespace, name: 'observers', body: pod });
  }

  /** Restarts kubelet, if the settings say how. */
  restartKubelet(): void {
    const { restartKubelet } = this.#settings;
    if (restartKubelet) execFileSync('sh', ['-c', restartKubelet], { stdio: 'inherit' });
  }

  /** What a container has printed so far; empty before it runs, and while kubelet restarts. */
  async log(container: string): Promise<string> {
    const { namespace } = this;
    const name = container === CSI_OBSERVER ? CSI_OBSERVER : 'observers';
    try {
      return await this.#core.readNamespacedPodLog({ namespace, name, container });
    } catch (error) {
      // 500: the API server cannot reach kubelet.
      if (error instanceof ApiException && [400, 404, 500].includes(error.code)) return '';
      throw error;
    }
  }

  /** The containers that have ended. */
  async ended(): Promise<string[]> {
    const { namespace } = this;
    const { status } = await this.#core.readNamespacedPod({ namespace, name: 'observers' });
    const containers = status?.containerStatuses ?? [];
    return containers.filter(({ state }) => state?.terminated !== undefined).map(({ name }) => name);
  }

  /** What kubelet and the scheduler say of the pods, for the message of a test that failed. */
  async events(): Promise<string> {
    const { items } = await this.#core.listNamespacedEvent({ namespace: this.namespace });
    return items
      .map(({ involvedObject, reason, message }) => `${involvedObject.name}: ${reason}: ${message}`)
      .join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The volume is unmounted by its driver, so the pod that has it goes first.
    if (this.#hasDriver) await this.#deletePod(CSI_OBSERVER);
    await ifThere(() => this.#core.deleteNamespace({ name: this.namespace }));
    if (this.#hasDriver) await ifThere(() => this.#storage.deleteCSIDriver({ name: DRIVER }));
  }

  /** Resolves when it is gone, or after a minute. */
  async #deletePod(name: string): Promise<void> {
    const { namespace } = this;
    await ifThere(() => this.#core.deleteNamespacedPod({ namespace, name }));
    for (let second = 0; second < 60; second += 1) {
      const pod = await ifThere(() => this.#core.readNamespacedPod({ namespace, name }));
      if (!pod) return;
      await sleep(1_000);
    }
  }
}

/** The answer; undefined when there is no such object. */
async function ifThere<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw error;
  }
}
