import { setTimeout as sleep } from 'node:timers/promises';

import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  RbacAuthorizationV1Api,
  StorageV1Api,
} from '@kubernetes/client-node';

import { csiDaemonSet, csiDriver, csiObserverPod, CSI_OBSERVER, DRIVER } from './csi.js';
import { ifThere, Namespace } from './namespace.js';
import { account, configMap, observerPod, role, roleBinding, secret } from './objects.js';
import { restartKubelet, type ClusterSettings } from './settings.js';

/** A namespace of its own with the objects of the test. Removed when it is disposed, with all that is in it. */
export class ClusterStage implements AsyncDisposable {
  readonly #namespace: Namespace;
  readonly #settings: ClusterSettings;
  readonly #core: CoreV1Api;
  readonly #rbac: RbacAuthorizationV1Api;
  readonly #apps: AppsV1Api;
  readonly #storage: StorageV1Api;
  #hasDriver = false;

  constructor(settings: ClusterSettings) {
    const { kubeConfig } = settings;
    this.#settings = settings;
    this.#namespace = new Namespace(kubeConfig);
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
    this.#rbac = kubeConfig.makeApiClient(RbacAuthorizationV1Api);
    this.#apps = kubeConfig.makeApiClient(AppsV1Api);
    this.#storage = kubeConfig.makeApiClient(StorageV1Api);
  }

  /** Creates the namespace, the objects and the pods. What fails leaves nothing behind once this is disposed. */
  async create(): Promise<void> {
    const namespace = this.#namespace.name;
    const { image, registrar, hostNetwork } = this.#settings;
    await this.#namespace.create(registrar === undefined ? undefined : 'privileged');
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

  /** Replaces both objects, and annotates the pod, so that kubelet syncs at once instead of within a minute. */
  async publish(update: number): Promise<void> {
    await this.#replace(update, {});
  }

  /** Replaces both objects by ones with the same data. */
  async rewrite(update: number): Promise<void> {
    await this.#replace(update, { rewritten: String(update) });
  }

  async #replace(update: number, labels: Readonly<Record<string, string>>): Promise<void> {
    const namespace = this.#namespace.name;
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
    restartKubelet(this.#settings);
  }

  /** What a container has printed so far; empty before it runs, and while kubelet restarts. */
  async log(container: string): Promise<string> {
    const namespace = this.#namespace.name;
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
    const namespace = this.#namespace.name;
    const { status } = await this.#core.readNamespacedPod({ namespace, name: 'observers' });
    const containers = status?.containerStatuses ?? [];
    return containers.filter(({ state }) => state?.terminated !== undefined).map(({ name }) => name);
  }

  /** Resolves once something holds. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    await this.#namespace.until(what, holds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The volume is unmounted by its driver, so the pod that has it goes first.
    if (this.#hasDriver) await this.#deletePod(CSI_OBSERVER);
    await this.#namespace[Symbol.asyncDispose]();
    if (this.#hasDriver) await ifThere(() => this.#storage.deleteCSIDriver({ name: DRIVER }));
  }

  /** Resolves when it is gone, or after a minute. */
  async #deletePod(name: string): Promise<void> {
    const namespace = this.#namespace.name;
    await ifThere(() => this.#core.deleteNamespacedPod({ namespace, name }));
    for (let second = 0; second < 60; second += 1) {
      const pod = await ifThere(() => this.#core.readNamespacedPod({ namespace, name }));
      if (!pod) return;
      await sleep(1_000);
    }
  }
}
