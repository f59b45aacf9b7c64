/** How `PodSync` follows objects: lists of any size, watches that say nothing, and parts of a cluster that are forbidden. */
import { healthOf } from 'resilient-watcher';
import { type ClusterClient, type ClusterRequest } from 'resilient-watcher/kubernetes';
import { PodSync } from '@resilient-watcher/sync-pods';
import { describe, expect, onTestFinished, test } from 'vitest';

import { configMap, podOf, podSyncScene, type PodSyncScene } from './support/pod-sync-scene.js';

const app = { configMap: { name: 'app' } };

/** What an API server refuses, as client-node reports it. */
const refused = (code: number, message: string): Error =>
  Object.assign(new Error(message), { code, body: JSON.stringify({ message }) });

const never = new Promise<never>(() => {});

/** A watch that says nothing, of a client that ignores its signal. */
async function* silence(): AsyncGenerator<string> {
  yield await never;
}

/** The parameters of the requests of a client, and a client that remembers them. */
function recorded({ client }: Pick<PodSyncScene, 'client'>): {
  readonly client: ClusterClient;
  /** The values of a parameter in the requests for a resource. */
  asked(resource: string, parameter: string): string[];
} {
  const urls: URL[] = [];
  const note = ({ path }: ClusterRequest): void => void urls.push(new URL(path, 'http://server'));
  return {
    client: {
      request: (request) => (note(request), client.request(request)),
      lines: (request) => (note(request), client.lines(request)),
    },
    asked: (resource, parameter) =>
      urls
        .filter(({ pathname }) => pathname.endsWith(`/${resource}`))
        .flatMap(({ searchParams }) => searchParams.get(parameter) ?? []),
  };
}

/** As many ConfigMaps, of which a few have a large annotation. */
function fill({ server }: PodSyncScene, count: number, large: readonly number[] = []): void {
  for (let index = 0; index < count; index += 1) {
    const object = configMap(`config-${index}`);
    const annotations = { applied: 'x'.repeat(250_000) };
    const metadata = { ...object.metadata, ...(large.includes(index) && { annotations }) };
    server.putObject('configmaps', { ...object, metadata });
  }
}

/** Starts it without waiting: a `start()` that waits for something forbidden must not end the test. */
function begin(scene: PodSyncScene, options: ConstructorParameters<typeof PodSync>[0]): PodSync {
  const { client, clock } = scene;
  const running = new PodSync({ client, clock, namespaces: ['shop'], random: () => 0, ...options });
  onTestFinished(() => running.close());
  running.start().catch(() => {});
  return running;
}

/** Lets time pass in steps until the assertion holds. */
const passUntil = ({ pass, until }: PodSyncScene, ms: number, assertion: () => void): Promise<void> =>
  until(async () => {
    await pass(ms);
    assertion();
  });

describe('a list of more than a page', () => {
  test('is streamed, and the same stream is the watch', async () => {
    const scene = await podSyncScene();
    fill(scene, 300, [7, 8, 9]);
    scene.server.putObject('pods', podOf('mounts', [{ configMap: { name: 'config-299' } }]));
    const { client, asked } = recorded(scene);
    const running = await scene.sync({ client });
    expect(running.status()).toMatchObject({ listed: true, objects: 300 });
    expect(asked('configmaps', 'continue')).toEqual([]);
    expect(asked('configmaps', 'sendInitialEvents')).toEqual(['true']);
    expect(asked('configmaps', 'resourceVersion')).toEqual([]);
    scene.update('config-299');
    await scene.until(() => expect(running.status().synced).toBe(1));
    expect(asked('configmaps', 'watch')).toEqual(['1']);
  });

  test('is streamed again after ten minutes, and knows what is gone', async () => {
    const scene = await podSyncScene();
    fill(scene, 300);
    const { client, asked } = recorded(scene);
    const running = await scene.sync({ client });
    await passUntil(scene, 60_000, () =>
      expect(asked('configmaps', 'sendInitialEvents').length).toBeGreaterThan(1),
    );
    scene.server.deleteObject('configmaps', 'shop', 'config-5');
    await scene.until(() => expect(running.status().objects).toBe(299));
  });

  test.each<[string, Partial<ClusterClient> | undefined]>([
    ['is read in pages where the API server refuses to stream it', undefined],
    ['is read in pages where a proxy holds the stream back', { lines: silence }],
    [
      'is read in pages where the stream never says that it is complete',
      {
        async *lines({ path }) {
          const object = {
            metadata: { namespace: 'shop', name: 'config-0', uid: 'u', resourceVersion: '2' },
          };
          if (path.includes('configmaps')) yield JSON.stringify({ type: 'ADDED', object });
          yield await never;
        },
      },
    ],
  ])('%s', async (_what, changed) => {
    const scene = await podSyncScene();
    fill(scene, 300);
    scene.server.hasStreamingLists = false;
    const { client, asked } = recorded({ client: { ...scene.client, ...changed } });
    const running = begin(scene, { client });
    await passUntil(scene, 1_000, () =>
      expect(running.status()).toMatchObject({ listed: true, objects: 300 }),
    );
    expect(asked('configmaps', 'continue')).toHaveLength(1);
  });

  test('is complete although some objects are large, and later pages and lists are whole again', async () => {
    const scene = await podSyncScene();
    fill(
      scene,
      600,
      Array.from({ length: 20 }, (_, index) => 100 + index),
    );
    scene.server.hasStreamingLists = false;
    const { client, asked } = recorded(scene);
    const running = await scene.sync({ client });
    expect(running.status()).toMatchObject({ listed: true, objects: 600 });
    const sizes = asked('configmaps', 'limit').map(Number);
    expect(Math.min(...sizes)).toBeLessThan(20);
    expect(sizes.at(-1)).toBe(250);
    scene.server.expireWatches();
    await passUntil(scene, 30_000, () =>
      expect(asked('configmaps', 'limit').filter((size) => size === '250').length).toBeGreaterThan(3),
    );
  });

  test('keeps whole pages after errors with a long body', async () => {
    const scene = await podSyncScene();
    const { client, asked } = recorded(scene);
    const long = { kind: 'status', status: 502, message: 'x'.repeat(5 * 2 ** 20) } as const;
    scene.server.script(...Array.from({ length: 6 }, () => long));
    const running = begin(scene, { client });
    await passUntil(scene, 1_000, () => expect(running.status().listed).toBe(true));
    expect(new Set(asked('configmaps', 'limit'))).toEqual(new Set(['250']));
  });

  test('that names another page without a new object fails', async () => {
    const scene = await podSyncScene();
    const page = { metadata: { resourceVersion: '1', continue: 'more' }, items: [configMap('app')] };
    const failures: string[] = [];
    const running = begin(scene, {
      client: { request: () => Promise.resolve(page), lines: () => silence() },
    });
    running.on('retry', ({ error }) => failures.push(error.message));
    await passUntil(scene, 1_000, () => expect(failures[0]).toContain('the list does not end'));
  });
});

describe('a watch', () => {
  test('that says nothing for longer than between bookmarks is followed by a list, and fails if that finds what it kept back', async () => {
    const scene = await podSyncScene();
    const { server, pass, update } = scene;
    server.putObject('configmaps', configMap('app'));
    server.putObject('pods', podOf('mounts', [app]));
    const signals: AbortSignal[] = [];
    const lines = ({ signal }: ClusterRequest): AsyncGenerator<string> => (signals.push(signal), silence());
    const running = begin(scene, { client: { ...scene.client, lines } });
    const failures: string[] = [];
    running.on('retry', ({ error }) => failures.push(error.message));
    await passUntil(scene, 1_000, () => expect(running.status().listed).toBe(true));
    await pass(200_000);
    // Without watch caches, the API server sends no bookmarks.
    expect(failures).toEqual([]);
    for (let change = 1; change <= 3; change += 1) {
      update('app', `${change}`);
      await pass(95_000);
      await scene.until(() => expect(running.status().synced).toBe(change));
    }
    expect(failures).toContain('Cannot watch configmaps in shop: the watch sent nothing for 90 s');
    // The requests of the watches before have ended.
    expect(signals.length).toBeGreaterThan(4);
    expect(signals.filter(({ aborted }) => !aborted).length).toBeLessThanOrEqual(2);
    expect(running.status().healthy).toBe(false);
  });

  test('that is forbidden is unhealthy although lists succeed, and the lists find changes', async () => {
    const scene = await podSyncScene();
    scene.server.putObject('configmaps', configMap('app'));
    scene.server.putObject('pods', podOf('mounts', [app]));
    let isForbidden = true;
    const running = begin(scene, {
      client: {
        ...scene.client,
        lines: (request) => {
          if (isForbidden) throw refused(403, 'cannot watch resource');
          return scene.client.lines(request);
        },
      },
    });
    const messages = new Set<string>();
    running.on('unhealthy', ({ error }) => messages.add(error.message));
    await passUntil(scene, 1_000, () =>
      expect(messages).toContain(
        'Cannot watch configmaps in shop: cannot watch resource (403); grant it by RBAC',
      ),
    );
    expect(running.status()).toMatchObject({ listed: true, healthy: false });
    scene.update('app');
    await passUntil(scene, 10_000, () => expect(running.status().synced).toBe(1));
    isForbidden = false;
    // The first bookmark says that the watch is well.
    await passUntil(scene, 10_000, () => expect(running.status().healthy).toBe(true));
  });

  test('that ends at once without an event is unhealthy', async () => {
    const scene = await podSyncScene();
    const running = begin(scene, {
      client: { ...scene.client, lines: async function* () {} },
    });
    await passUntil(scene, 1_000, () =>
      expect(running.status()).toMatchObject({ listed: true, healthy: false }),
    );
  });

  test.each<[string, () => void]>([
    ['ends', () => undefined],
    [
      'cuts',
      () => {
        throw new Error('aborted');
      },
    ],
  ])('that a load balancer %s because it is idle is no failure', async (_what, end) => {
    const scene = await podSyncScene();
    let watches = 0;
    const running = begin(scene, {
      client: {
        ...scene.client,

        async *lines() {
          watches += 1;
          await new Promise<void>((resolve) => scene.clock.schedule(resolve, 35_000));
          end();
        },
      },
    });
    const failures: string[] = [];
    running.on('retry', ({ error }) => failures.push(error.message));
    await passUntil(scene, 10_000, () => expect(watches).toBeGreaterThan(8));
    expect(failures).toEqual([]);
  });

  test('that is answered with 429 is continued from the same version, without a list', async () => {
    const scene = await podSyncScene();
    const { server, sync, until, update, pass } = scene;
    server.putObject('pods', podOf('mounts', [app]));
    const { client, asked } = recorded(scene);
    const running = await sync({ client });
    await server.refuse();
    await server.listen();
    server.script({ kind: 'throttled', retryAfterSeconds: 5 }, { kind: 'throttled', retryAfterSeconds: 5 });
    update('app');
    await until(async () => {
      await pass(1_000);
      expect(running.status().synced).toBe(1);
    });
    expect(asked('configmaps', 'limit')).toHaveLength(1);
  });

  test('that the API server does not end is ended, and everything is listed again', async () => {
    const scene = await podSyncScene();
    const { client, asked } = recorded({
      client: {
        ...scene.client,
        async *lines() {
          for (;;) {
            await new Promise<void>((resolve) => scene.clock.schedule(resolve, 50_000));
            yield JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } });
          }
        },
      },
    });
    const running = begin(scene, { client });
    await passUntil(scene, 60_000, () => expect(asked('configmaps', 'limit').length).toBeGreaterThan(1));
    expect(running.status().healthy).toBe(true);
  });
});

describe('what is forbidden', () => {
  const only = (client: ClusterClient, isForbidden: (path: string) => boolean): ClusterClient => ({
    request: (request) =>
      isForbidden(request.path) ? Promise.reject(refused(403, 'it is forbidden')) : client.request(request),
    lines: (request) => {
      if (isForbidden(request.path)) throw refused(403, 'it is forbidden');
      return client.lines(request);
    },
  });

  test('in one namespace does not stop the others; start() does not wait for it, and health names it', async () => {
    const scene = await podSyncScene();
    scene.server.putObject('configmaps', configMap('app'));
    scene.server.putObject('pods', podOf('mounts', [app]));
    const running = begin(scene, {
      namespaces: ['gone', 'shop'],
      client: only(scene.client, (path) => path.includes('/gone/')),
    });
    const messages = new Set<string>();
    running.on('unhealthy', ({ error }) => messages.add(error.message));
    await scene.until(() => expect(running.status()).toMatchObject({ pods: 1, objects: 1 }));
    scene.update('app');
    await scene.until(() => expect(running.status().synced).toBe(1));
    await passUntil(scene, 1_000, () => expect(messages.size).toBe(2));
    await running.start();
    expect([...messages].sort()).toEqual([
      'Cannot list configmaps in gone: it is forbidden (403); grant it by RBAC',
      'Cannot list pods in gone: it is forbidden (403); grant it by RBAC',
    ]);
    expect(running.status()).toMatchObject({ listed: false, healthy: false });
    expect(healthOf(running).checks[0]?.reason).toContain('ERR_CLUSTER_FORBIDDEN');
  });

  test('of kinds, such as Secrets, does not stop the others; what changed unseen is delivered once it is allowed', async () => {
    const scene = await podSyncScene();
    const { server, until, annotation } = scene;
    server.putObject('configmaps', configMap('app'));
    server.putObject('secrets', configMap('password'));
    server.putObject('pods', podOf('both', [app, { secret: { secretName: 'password' } }]));
    server.putObject('pods', podOf('plain', [app]));
    const before = await scene.sync({ secrets: true });
    scene.update('app');
    await until(() => expect(before.status().synced).toBe(2));
    await before.close();
    const known = annotation('both');

    server.putObject('secrets', configMap('password', 'new'));
    let isForbidden = true;
    const running = begin(scene, {
      secrets: true,
      client: only(scene.client, (path) => isForbidden && path.includes('/secrets')),
    });
    await passUntil(scene, 1_000, () => expect(running.status()).toMatchObject({ pods: 2, healthy: false }));
    // Its annotation cannot be compared: what it mounts is not known.
    expect(annotation('both')).toBe(known);
    scene.update('app', 'newer');
    await until(() => expect(running.status().synced).toBe(2));
    const partly = annotation('both');
    expect(partly).not.toBe(known);
    isForbidden = false;
    await passUntil(scene, 10_000, () =>
      expect(running.status()).toMatchObject({ listed: true, healthy: true, synced: 3 }),
    );
    expect(annotation('both')).not.toBe(partly);
  });
});
