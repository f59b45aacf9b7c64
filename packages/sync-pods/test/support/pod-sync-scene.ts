import { clusterClient } from 'resilient-watcher/kubernetes';
import { PodSync, type PodSyncOptions } from '@resilient-watcher/sync-pods';
import { type ApiObject, type LocalApiServer } from '@resilient-watcher/local-api-server';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, vi } from 'vitest';

import { clusterScene } from '../../../../test/support/cluster-scene.js';

export const ANNOTATION = 'resilient-watcher.dev/mounted-versions';

/** A source of a volume, such as `{ configMap: { name: 'app' } }`. */
export type VolumeSource = Readonly<Record<string, unknown>>;

/** A running pod that mounts each of these volumes as a directory. */
export function podOf(
  name: string,
  volumes: readonly VolumeSource[],
  labels?: Record<string, string>,
): ApiObject & { readonly spec: object } {
  return {
    metadata: { namespace: 'shop', name, ...(labels && { labels }) },
    spec: {
      nodeName: 'node',
      containers: [
        {
          name: 'app',
          volumeMounts: volumes.map((_, index) => ({ name: `v${index}`, mountPath: `/v${index}` })),
        },
      ],
      volumes: volumes.map((source, index) => ({ name: `v${index}`, ...source })),
    },
    status: { phase: 'Running' },
  };
}

export const configMap = (name: string, value = '0'): ApiObject => ({
  metadata: { namespace: 'shop', name },
  data: { value },
});

/** An API server with objects, and what makes a `PodSync` of it. Server and `PodSync` have one clock. */
export async function podSyncScene(): Promise<PodSyncScene> {
  const clock = new FakeClock();
  const { server, inPod } = await clusterScene({ clock });
  const inner = clusterClient({ kubeConfig: inPod(), clock });
  let pending = 0;
  const client: typeof inner = {
    request(request) {
      pending += 1;
      return inner.request(request).finally(() => (pending -= 1));
    },
    lines: (request) => inner.lines(request),
  };
  return {
    clock,
    server,
    client,
    async sync(options) {
      const sync = new PodSync({ client, clock, namespaces: ['shop'], random: () => 0, ...options });
      onTestFinished(() => sync.close());
      const before = server.requests.length;
      await sync.start();
      // A list and a watch of each resource: a script is for what comes afterwards.
      const requests = before + (options?.secrets === true ? 6 : 4);
      await expect.poll(() => server.requests.length).toBeGreaterThanOrEqual(requests);
      return sync;
    },
    update: (name, value = 'new') => void server.putObject('configmaps', configMap(name, value)),
    annotation: (pod) => server.getObject('pods', 'shop', pod)?.metadata.annotations?.[ANNOTATION],
    patches: () =>
      server.requests.filter(({ method }) => method === 'PATCH').map(({ path }) => path.split('/').at(-1)),
    async pass(ms) {
      for (let left = ms; left > 0; left -= 1_000) {
        await clock.advance(1_000);
        await vi.waitFor(() => expect(pending).toBe(0), { timeout: 60_000, interval: 1 });
      }
    },
    until: (assertion) => vi.waitFor(assertion, { timeout: 60_000, interval: 5 }),
  };
}

export interface PodSyncScene {
  readonly clock: FakeClock;
  readonly server: LocalApiServer;
  readonly client: ReturnType<typeof clusterClient>;
  /** Starts a `PodSync` of the namespace `shop`. */
  sync(options?: PodSyncOptions): Promise<PodSync>;
  /** Changes a ConfigMap. */
  update(name: string, value?: string): void;
  annotation(pod: string): string | undefined;
  /** The pods of the patches so far, in their order. */
  patches(): (string | undefined)[];
  /** Lets time pass, but not while a request is on its way. */
  pass(ms: number): Promise<void>;
  /** Waits until the assertion holds; real sockets take real time. */
  until(assertion: () => void | Promise<void>): Promise<void>;
}
