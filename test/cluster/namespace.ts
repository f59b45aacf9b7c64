import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { ApiException, CoreV1Api, type KubeConfig } from '@kubernetes/client-node';

/** kubelet's sync of a volume takes a minute or more when the touch of the pod is not enough. */
const LIMIT_MS = 180_000;

/** The Pod Security Standards. */
export type PodSecurity = 'privileged' | 'baseline' | 'restricted';

/** A namespace with a name of its own. Removed when it is disposed, with all that is in it. */
export class Namespace implements AsyncDisposable {
  readonly name = `resilient-watcher-${randomBytes(4).toString('hex')}`;
  readonly #core: CoreV1Api;

  constructor(kubeConfig: KubeConfig) {
    this.#core = kubeConfig.makeApiClient(CoreV1Api);
  }

  /** @param podSecurity which pods are allowed; default: what the cluster allows. */
  async create(podSecurity?: PodSecurity): Promise<void> {
    const labels = podSecurity && { 'pod-security.kubernetes.io/enforce': podSecurity };
    await this.#core.createNamespace({ body: { metadata: { name: this.name, ...(labels && { labels }) } } });
  }

  /** Resolves once something holds. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + LIMIT_MS;
    while (!(await holds())) {
      if (performance.now() > deadline) {
        throw new Error(`Not within ${LIMIT_MS / 1000} s: ${what}\n${await this.events()}`);
      }
      await sleep(500);
    }
  }

  /** What kubelet and the scheduler say of the pods, for the message of a test that failed. */
  async events(): Promise<string> {
    const { items } = await this.#core.listNamespacedEvent({ namespace: this.name });
    return items
      .map(({ involvedObject, reason, message }) => `${involvedObject.name}: ${reason}: ${message}`)
      .join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await ifThere(() => this.#core.deleteNamespace({ name: this.name }));
  }
}

/** The answer; undefined when there is no such object. */
export async function ifThere<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw error;
  }
}
