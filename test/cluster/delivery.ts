/** The pods of the delivery test, and how long an update takes to reach them. */
import { CoreV1Api, type V1Pod } from '@kubernetes/client-node';

import { Namespace } from './namespace.js';
import { configMap, secret } from './objects.js';
import type { ClusterSettings } from './settings.js';
import { linesOf } from './tally.js';

const PODS = 10;

/** Which files show an update of which object: those of its own volume, and of the projected one. */
export const FILES = {
  configmap: ['/etc/config/app.yaml', '/etc/projected/config.yaml'],
  secret: ['/etc/secret/app.yaml', '/etc/projected/secret.yaml'],
} as const;

/** An update that the API server has accepted. */
export interface Published {
  readonly update: number;
  readonly object: keyof typeof FILES;
  /** When it answered, ms since the epoch. */
  readonly at: number;
  /** The row of the table that it belongs to. */
  readonly under: string;
}

/** A pod with each kind of volume, and a listener for each file. */
function listeningPod(image: string, name: string, { hostNetwork = false } = {}): V1Pod {
  const items = (path: string) => [{ key: 'app.yaml', path }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      hostNetwork,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 5,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
      containers: [
        {
          name: 'listener',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['node', 'observe.mjs'],
          env: [
            { name: 'OBSERVE', value: 'each' },
            { name: 'TARGET', value: Object.values(FILES).flat().join(',') },
          ],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: ['config', 'secret', 'projected'].map((volume) => ({
            name: volume,
            mountPath: `/etc/${volume}`,
            readOnly: true,
          })),
        },
      ],
      volumes: [
        { name: 'config', configMap: { name: 'config' } },
        { name: 'secret', secret: { secretName: 'secret' } },
        {
          name: 'projected',
          projected: {
            sources: [
              { configMap: { name: 'config', items: items('config.yaml') } },
              { secret: { name: 'secret', items: items('secret.yaml') } },
            ],
          },
        },
      ],
    },
  };
}

/** A namespace with a ConfigMap, a Secret and the pods that mount them. Removed when it is disposed. */
export class DeliveryStage implements AsyncDisposable {
  readonly published: Published[] = [];
  readonly #namespace: Namespace;
  readonly #core: CoreV1Api;
  readonly #settings: ClusterSettings;
  readonly #logs = new Map<string, string>();

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    this.#namespace = new Namespace(settings.kubeConfig);
    this.#core = settings.kubeConfig.makeApiClient(CoreV1Api);
  }

  get namespace(): string {
    return this.#namespace.name;
  }

  /** Resolves once each listener runs. */
  async create(): Promise<void> {
    const { namespace } = this;
    const { image, hostNetwork } = this.#settings;
    await this.#namespace.create();
    // The controller manager creates it a moment after the namespace, and no pod is accepted before.
    await this.#namespace.until('there is a default service account', async () => {
      const { items } = await this.#core.listNamespacedServiceAccount({ namespace });
      return items.some(({ metadata }) => metadata?.name === 'default');
    });
    await this.#core.createNamespacedConfigMap({ namespace, body: configMap(0) });
    await this.#core.createNamespacedSecret({ namespace, body: secret(0) });
    for (let number = 0; number < PODS; number += 1) {
      const body = listeningPod(image, `listener-${number}`, { hostNetwork });
      await this.#core.createNamespacedPod({ namespace, body });
      this.#logs.set(`listener-${number}`, '');
    }
    await this.#untilEach('is ready', (log) => log.includes('"ready"'));
  }

  /** Replaces the ConfigMap or, for an even number, the Secret. */
  async publish(update: number, under: string): Promise<void> {
    const { namespace } = this;
    const object = update % 2 === 0 ? 'secret' : 'configmap';
    if (object === 'secret') {
      await this.#core.replaceNamespacedSecret({ namespace, name: 'secret', body: secret(update) });
    } else {
      await this.#core.replaceNamespacedConfigMap({ namespace, name: 'config', body: configMap(update) });
    }
    this.published.push({ update, object, at: Date.now(), under });
  }

  /** Resolves once each listener has seen the newest update in each file that shows it. */
  async delivered(): Promise<void> {
    const newest = this.published.at(-1);
    if (!newest) return;
    await this.#untilEach(`has seen update ${newest.update}`, (log) =>
      FILES[newest.object].every((file) => seenAt(log, file, newest.update) !== undefined),
    );
  }

  /** The table so far. */
  table(): string {
    return deliveryTable(this.published, [...this.#logs.values()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#namespace[Symbol.asyncDispose]();
  }

  async #untilEach(what: string, holds: (log: string) => boolean): Promise<void> {
    const { namespace } = this;
    for (const name of this.#logs.keys()) {
      await this.#namespace.until(`${name} ${what}`, async () => {
        const { status } = await this.#core.readNamespacedPod({ namespace, name });
        if (status?.phase === 'Pending') return false;
        this.#logs.set(name, await this.#core.readNamespacedPodLog({ namespace, name }));
        return holds(this.#logs.get(name) ?? '');
      });
    }
  }
}

function seenAt(log: string, file: string, update: number): number | undefined {
  return linesOf(log).find(({ who, sequence }) => who === file && sequence === update)?.at;
}

/**
 * A row for each `under`: how long the updates took from the answer of the API server to the line of the listener. A file
 * that never showed the update counts as lost.
 * @param logs what each listener has printed
 */
function deliveryTable(published: readonly Published[], logs: readonly string[]): string {
  const rows = [...new Set(published.map(({ under }) => under))].map((under) => {
    const updates = published.filter((update) => update.under === under);
    const delays = updates.flatMap(({ update, object, at }) =>
      logs.flatMap((log) =>
        FILES[object].map((file) => {
          const seen = seenAt(log, file, update);
          return seen === undefined ? undefined : seen - at;
        }),
      ),
    );
    const seen = delays.filter((delay) => delay !== undefined).toSorted((one, other) => one - other);
    const seconds = (share: number): string => {
      const delay = seen[Math.max(0, Math.ceil(seen.length * share) - 1)];
      return delay === undefined ? '' : (delay / 1_000).toFixed(2);
    };
    const lost = delays.length - seen.length;
    return [under, updates.length, seen.length, lost, seconds(0.5), seconds(0.99), seconds(1)].join(' | ');
  });
  const head = 'seconds from the answer to the listener | updates | seen | lost | p50 | p99 | most';
  return [head, '--- | --: | --: | --: | --: | --: | --:', ...rows].map((row) => `| ${row} |`).join('\n');
}
