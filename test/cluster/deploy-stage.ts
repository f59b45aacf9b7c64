import { request, type RequestOptions } from 'node:https';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';

import {
  AppsV1Api,
  CoreV1Api,
  Exec,
  KubernetesObjectApi,
  PatchStrategy,
  type KubernetesObject,
  type V1Pod,
} from '@kubernetes/client-node';

import { fitted, type Manifest } from './manifests.js';
import { Namespace, type PodSecurity } from './namespace.js';
import type { ClusterSettings } from './settings.js';

/** A namespace into which manifests of `deploy/` are applied. Removed when it is disposed, with all that is in it. */
export class DeployStage implements AsyncDisposable {
  readonly #settings: ClusterSettings;
  readonly #namespace: Namespace;
  readonly #objects: KubernetesObjectApi;
  readonly #core: CoreV1Api;
  readonly #apps: AppsV1Api;
  readonly #atEnd: (() => Promise<void>)[] = [];

  private constructor(settings: ClusterSettings) {
    const { kubeConfig } = settings;
    this.#settings = settings;
    this.#namespace = new Namespace(kubeConfig);
    this.#objects = KubernetesObjectApi.makeApiClient(kubeConfig);
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
    this.#apps = kubeConfig.makeApiClient(AppsV1Api);
  }

  /** @param podSecurity which pods the namespace allows. */
  static async create(settings: ClusterSettings, podSecurity: PodSecurity): Promise<DeployStage> {
    const stage = new DeployStage(settings);
    await stage.#namespace.create(podSecurity);
    return stage;
  }

  get namespace(): string {
    return this.#namespace.name;
  }

  /** Applies manifests of `deploy/`, with the images of the settings. */
  async apply(manifests: readonly Manifest[]): Promise<void> {
    for (const manifest of manifests) await this.#apply(fitted(manifest, this.namespace, this.#settings));
  }

  /**
   * Replaces the data of a ConfigMap, and annotates the pods, so that kubelet syncs at once instead of within a
   * minute.
   */
  async setConfigMap(name: string, data: Record<string, string>): Promise<void> {
    await this.#change({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }

  /** The same with a Secret. */
  async setSecret(name: string, stringData: Record<string, string>): Promise<void> {
    await this.#change({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData });
  }

  async setServiceAccount(name: string): Promise<void> {
    await this.#change({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  }

  async #change(object: Manifest & Record<string, unknown>): Promise<void> {
    const { namespace } = this;
    await this.#apply({ ...object, metadata: { ...object.metadata, namespace } });
    const annotations = { touched: new Date().toISOString() };
    for (const { metadata } of await this.pods()) {
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: metadata?.name ?? '', namespace, annotations },
      };
      await this.#objects.patch(pod, undefined, undefined, undefined, undefined, PatchStrategy.MergePatch);
    }
  }

  async #apply(object: KubernetesObject): Promise<void> {
    await this.#objects.patch(
      object,
      undefined,
      undefined,
      'resilient-watcher-test',
      true,
      PatchStrategy.ServerSideApply,
    );
  }

  /** Resolves once something holds. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    await this.#namespace.until(what, holds);
  }

  /** Resolves once all pods of the workloads are ready. */
  async untilReady(): Promise<void> {
    const { namespace } = this;
    await this.until('all pods are ready', async () => {
      const deployments = await this.#apps.listNamespacedDeployment({ namespace });
      const daemonSets = await this.#apps.listNamespacedDaemonSet({ namespace });
      return [
        ...deployments.items.map(({ spec, status }) => status?.availableReplicas === (spec?.replicas ?? 1)),
        ...daemonSets.items.map(
          ({ status }) => !!status?.numberReady && status.numberReady === status.desiredNumberScheduled,
        ),
      ].every(Boolean);
    });
  }

  async pods(): Promise<V1Pod[]> {
    const { namespace } = this;
    return (await this.#core.listNamespacedPod({ namespace })).items;
  }

  /** How often containers were started again, in all pods. */
  async restarts(): Promise<number> {
    const statuses = (await this.pods()).flatMap(({ status }) => [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
    ]);
    return statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
  }

  /** What a container has printed so far. */
  async log(pod: V1Pod, container: string): Promise<string> {
    const { namespace } = this;
    return this.#core.readNamespacedPodLog({ namespace, name: pod.metadata?.name ?? '', container });
  }

  /** What a pod serves over HTTP, asked through the API server; undefined when it does not answer with 200. */
  async served(pod: V1Pod, port: number, path: string): Promise<string | undefined> {
    const { kubeConfig } = this.#settings;
    const options: RequestOptions = {};
    await kubeConfig.applyToHTTPSOptions(options);
    const server = kubeConfig.getCurrentCluster()?.server ?? '';
    const proxy = `/api/v1/namespaces/${this.namespace}/pods/${pod.metadata?.name}:${port}/proxy${path}`;
    return new Promise((resolve, reject) => {
      request(server + proxy, options, (response) => {
        text(response).then((body) => resolve(response.statusCode === 200 ? body : undefined), reject);
      })
        .once('error', reject)
        .end();
    });
  }

  /** What a command prints in a container. */
  async run(pod: V1Pod, container: string, ...command: string[]): Promise<string> {
    const name = pod.metadata?.name ?? '';
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    stderr.resume();
    const exec = new Exec(this.#settings.kubeConfig);
    await new Promise<void>((resolve, reject) => {
      exec
        .exec(
          this.namespace,
          name,
          container,
          command,
          stdout,
          stderr,
          null,
          false,
          ({ status, message }) => {
            if (status === 'Success') resolve();
            else reject(new Error(`${command.join(' ')}: ${message}`));
          },
        )
        .catch(reject);
    });
    stdout.end();
    return text(stdout);
  }

  /** What is done before the namespace is removed. */
  atEnd(clean: () => Promise<void>): void {
    this.#atEnd.push(clean);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (const clean of this.#atEnd) await clean();
    } finally {
      await this.#namespace[Symbol.asyncDispose]();
    }
  }
}
