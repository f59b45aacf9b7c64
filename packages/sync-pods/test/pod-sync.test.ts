import { healthOf } from 'resilient-watcher';
import { PodSync } from '@resilient-watcher/sync-pods';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { ANNOTATION, configMap, podOf, podSyncScene, type VolumeSource } from './support/pod-sync-scene.js';

const app: VolumeSource = { configMap: { name: 'app' } };

test('outside a pod and without a client it does not start, and says what to do', async () => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '');
  onTestFinished(() => void vi.unstubAllEnvs());
  const sync = new PodSync();
  onTestFinished(() => sync.close());
  await expect(sync.start()).rejects.toMatchObject({
    code: 'ERR_KUBECONFIG',
    message: 'There is no KUBERNETES_SERVICE_HOST, so this is not a pod: set the option kubeConfig',
  });
});

describe('an update', () => {
  test.each<[string, VolumeSource]>([
    ['a ConfigMap', app],
    ['a Secret', { secret: { secretName: 'app' } }],
    ['a projected ConfigMap', { projected: { sources: [{ configMap: { name: 'app' } }] } }],
    ['a projected Secret', { projected: { sources: [{ secret: { name: 'app' } }] } }],
    ['an optional ConfigMap that appears', { configMap: { name: 'late', optional: true } }],
  ])('of %s patches the pods that mount it, and no others', async (_what, source) => {
    const { server, sync, until, annotation, patches } = await podSyncScene();
    server.putObject('configmaps', configMap('app'));
    server.putObject('secrets', configMap('app'));
    server.putObject('pods', podOf('mounts', [source]));
    server.putObject('pods', podOf('other', [{ configMap: { name: 'other' } }]));
    const synced: unknown[] = [];
    const running = await sync({ secrets: true });
    running.on('synced', (event) => synced.push(event));
    expect(patches()).toEqual([]);
    for (const name of ['app', 'late']) server.putObject('configmaps', configMap(name, 'new'));
    server.putObject('secrets', configMap('app', 'new'));
    await until(() => expect(synced).toContainEqual({ namespace: 'shop', pod: 'mounts', delayMs: 0 }));
    expect(annotation('mounts')).toMatch(/^[\da-f]{16}$/);
    expect(annotation('other')).toBeUndefined();
  });

  test.each<[string, object]>([
    ['is only mounted with subPath', { volumeMounts: [{ name: 'v0', mountPath: '/x', subPath: 'x' }] }],
    ['only gives variables', { envFrom: [{ configMapRef: { name: 'app' } }] }],
  ])('does not patch a pod where the object %s', async (_what, container) => {
    const { server, sync, until, annotation } = await podSyncScene();
    const pod = podOf('helpless', [app]);
    server.putObject('pods', { ...pod, spec: { ...pod.spec, containers: [container] } });
    server.putObject('pods', podOf('mounts', [app]));
    await sync();
    server.putObject('configmaps', configMap('app'));
    await until(() => expect(annotation('mounts')).toBeDefined());
    expect(annotation('helpless')).toBeUndefined();
  });

  test('patches a pod of which only a sidecar mounts the object', async () => {
    const { server, sync, update, until, annotation } = await podSyncScene();
    const pod = podOf('sidecar', [app]);
    const { containers, ...spec } = pod.spec as { containers: object[] };
    const initContainers = containers.map((each) => ({ ...each, restartPolicy: 'Always' }));
    server.putObject('pods', { ...pod, spec: { ...spec, initContainers, containers: [{ name: 'main' }] } });
    await sync();
    update('app');
    await until(() => expect(annotation('sidecar')).toBeDefined());
  });

  test('of several objects, which a pod that appears later has missed, is as old as the newest of them', async () => {
    const { server, sync, update, until, pass, annotation } = await podSyncScene();
    const other: VolumeSource = { configMap: { name: 'other' } };
    server.putObject('pods', podOf('has-app', [app]));
    server.putObject('pods', podOf('has-other', [other]));
    const running = await sync();
    const delays = new Map<string, number>();
    running.on('synced', ({ pod, delayMs }) => delays.set(pod, delayMs));
    update('app');
    await until(() => expect(annotation('has-app')).toBeDefined());
    await pass(4_000);
    update('other');
    await until(() => expect(annotation('has-other')).toBeDefined());
    server.putObject('pods', podOf('late', [app, other]));
    await until(() => expect(delays.has('late')).toBe(true));
    expect(delays.get('late')).toBe(0);
  });

  test('does not patch a pod that is on no node yet', async () => {
    const { server, sync, update, until, annotation } = await podSyncScene();
    const pending = podOf('pending', [app]);
    server.putObject('pods', { ...pending, spec: { ...pending.spec, nodeName: undefined } });
    server.putObject('pods', podOf('mounts', [app]));
    await sync();
    update('app');
    await until(() => expect(annotation('mounts')).toBeDefined());
    expect(annotation('pending')).toBeUndefined();
  });

  test('of a Secret is not followed by default, and contents are never requested', async () => {
    const { server, sync, client, until, annotation } = await podSyncScene();
    server.putObject('pods', podOf('mounts', [{ secret: { secretName: 'app' } }, app]));
    const asked: string[] = [];
    await sync({
      client: {
        request: (request) => (asked.push(`${request.path} ${request.accept}`), client.request(request)),
        lines: (request) => (asked.push(`${request.path} ${request.accept}`), client.lines(request)),
      },
    });
    server.putObject('secrets', configMap('app'));
    server.putObject('configmaps', configMap('app'));
    await until(() => expect(annotation('mounts')).toBeDefined());
    expect(asked.filter((each) => each.includes('secrets'))).toEqual([]);
    const objects = asked.filter((each) => each.includes('configmaps'));
    expect(objects.every((each) => each.includes('as=PartialObjectMetadata'))).toBe(true);
    expect(objects).toHaveLength(2);
  });

  test('is patched once; after the API server was away, again 2, 10, 30 and 60 s after the change, with another value each time', async () => {
    const { server, clock, sync, pass, until, update, annotation, patches } = await podSyncScene();
    server.putObject('pods', podOf('mounts', [app]));
    const running = await sync();
    update('app');
    await until(() => expect(running.status().synced).toBe(1));
    await pass(70_000);
    expect(patches()).toHaveLength(1);

    await server.refuse();
    update('app', 'newer');
    // Until the watches that follow are refused.
    await until(async () => {
      await clock.advance(100);
      expect(running.status().lastError).not.toBeNull();
    });
    await server.listen();
    await until(async () => {
      await clock.advance(100);
      expect(running.status().synced).toBe(2);
    });
    const [digest] = annotation('mounts')?.split('.') ?? [];
    for (const [ms, repetition] of [2_000, 8_000, 20_000, 30_000].entries()) {
      await pass(repetition);
      await until(() => expect(annotation('mounts')).toBe(`${digest}.${ms + 1}`));
    }
    expect(running.status()).toMatchObject({ synced: 2, repeated: 4 });
    await pass(70_000);
    update('app', 'newest');
    await until(() => expect(running.status().synced).toBe(3));
    await pass(70_000);
    expect(running.status().repeated).toBe(4);
  });

  test('that disappears changes only the pods that can do without the object', async () => {
    const { server, sync, until, annotation } = await podSyncScene();
    server.putObject('configmaps', configMap('app'));
    server.putObject('pods', podOf('needs', [app]));
    const optional: VolumeSource = { configMap: { name: 'app', optional: true } };
    server.putObject('pods', podOf('can-do-without', [optional, optional]));
    server.putObject('pods', podOf('needs-once', [app, optional]));
    server.putObject('pods', podOf('needs-too', [optional, { projected: { sources: [app] } }]));
    await sync();
    server.deleteObject('configmaps', 'shop', 'app');
    await until(() => expect(annotation('can-do-without')).toBeDefined());
    for (const name of ['needs', 'needs-once', 'needs-too']) expect(annotation(name), name).toBeUndefined();
    server.putObject('configmaps', configMap('app'));
    await until(() => expect(annotation('needs')).toBeDefined());
  });
});

describe('two replicas', () => {
  test('a pod that was not patched while no replica ran is patched at the start, if it has the annotation', async () => {
    const { server, sync, until, update, annotation } = await podSyncScene();
    server.putObject('pods', podOf('known', [app]));
    const one = await sync();
    update('app');
    await until(() => expect(annotation('known')).toBeDefined());
    await one.close();
    const old = annotation('known');
    server.putObject('pods', podOf('new', [app]));
    update('app', 'newer');
    await sync();
    await until(() => expect(annotation('known')?.slice(0, 16)).not.toBe(old?.slice(0, 16)));
    expect(annotation('new')).toBeUndefined();
  });
});

describe('kindness', () => {
  test('no more patches than the rate allows, with a burst; who has waited too long is left to kubelet', async () => {
    const { server, clock, sync, until, update } = await podSyncScene();
    for (let index = 0; index < 10; index += 1) server.putObject('pods', podOf(`p${index}`, [app]));
    const running = await sync({ maxPatchesPerSecond: 1, burst: 4, maxDelayMs: 1_000 });
    const behind: unknown[] = [];
    running.on('behind', (event) => behind.push(event));
    update('app');
    await until(() => expect(running.status()).toMatchObject({ synced: 4, waiting: 6 }));
    await clock.advance(1_000);
    await until(() => expect(running.status()).toMatchObject({ synced: 5, waiting: 5 }));
    await clock.advance(1_000);
    await until(() => expect(running.status()).toMatchObject({ synced: 5, waiting: 0, behind: 5 }));
    expect(behind).toContainEqual({ namespace: 'shop', pod: 'p9', waitedMs: expect.any(Number) as number });
  });

  test('close() does not wait for a client that ignores its signal', async () => {
    const { clock, client } = await podSyncScene();
    const stuck = new Promise<never>(() => {});
    const lines = async function* (): AsyncGenerator<string> {
      yield await stuck;
    };
    const running = new PodSync({
      client: { request: (request) => client.request(request), lines },
      clock,
      namespaces: ['shop'],
    });
    await running.start();
    await running.close();
    expect(running.state).toBe('closed');
  });

  test('a pod is patched at most once a second, however often its object changes', async () => {
    const { server, sync, update, until, annotation, patches, pass } = await podSyncScene();
    server.putObject('pods', podOf('busy', [app]));
    server.putObject('pods', podOf('later', [{ configMap: { name: 'other' } }]));
    await sync();
    update('app');
    await until(() => expect(annotation('busy')).toBeDefined());
    const first = annotation('busy');
    update('app', 'newer');
    update('other');
    // What has changed after it is delivered already.
    await until(() => expect(annotation('later')).toBeDefined());
    expect(annotation('busy')).toBe(first);
    await pass(1_000);
    await until(() => expect(annotation('busy')).not.toBe(first));
    expect(patches().filter((pod) => pod === 'busy')).toHaveLength(2);
  });

  test('a pod that takes the place of one that waited is not patched for it: it has what is new', async () => {
    const { server, sync, update, until, annotation, pass } = await podSyncScene();
    const pod = podOf('web-0', [app]);
    const named = (uid: string) => ({ ...pod, metadata: { ...pod.metadata, uid } });
    // Its place is at 79 % of the splay.
    server.putObject('pods', named('old'));
    server.putObject('pods', podOf('other', [{ configMap: { name: 'other' } }]));
    await sync({ splayMs: 60_000 });
    update('app');
    await pass(20_000);
    server.putObject('pods', named('two'));
    update('other');
    await pass(60_000);
    await until(() => expect(annotation('other')).toBeDefined());
    expect(annotation('web-0')).toBeUndefined();
  });

  test('a splay spreads the pods of an object, every one at the same place in each replica', async () => {
    const { server, clock, sync, until, update } = await podSyncScene();
    for (let index = 0; index < 10; index += 1) {
      const pod = podOf(`p${index}`, [app]);
      server.putObject('pods', {
        ...pod,
        metadata: { ...pod.metadata, uid: `uid-${index}` },
      });
    }
    const running = await sync({ splayMs: 20_000 });
    update('app');
    await until(() => expect(running.status().waiting).toBe(10));
    await clock.advance(10_000);
    await until(() => expect(running.status()).toMatchObject({ synced: 8, waiting: 2 }));
    await clock.advance(10_000);
    await until(() => expect(running.status()).toMatchObject({ synced: 10, waiting: 0 }));
  });

  test('429 stops all patches for as long as the server asked', async () => {
    const { server, clock, sync, until, update, patches } = await podSyncScene();
    server.putObject('pods', podOf('a', [app]));
    const running = await sync();
    const retries: unknown[] = [];
    running.on('retry', ({ error, delayMs }) => retries.push([error.code, delayMs]));
    server.script({ kind: 'throttled', retryAfterSeconds: 20 });
    update('app');
    await until(() => expect(retries).toEqual([['ERR_CLUSTER_REQUEST', 20_000]]));
    await clock.advance(19_999);
    expect(patches()).toHaveLength(1);
    await clock.advance(1);
    await until(() => expect(running.status().synced).toBe(1));
  });

  test('many patches that fail in one outage count as one failure', async () => {
    const { clock, server, client, sync, update, annotation, until } = await podSyncScene();
    server.putObject('configmaps', configMap('app'));
    const pods = Array.from({ length: 10 }, (_, number) => `web-${number}`);
    for (const name of pods) server.putObject('pods', podOf(name, [{ configMap: { name: 'app' } }]));
    let isDown = true;
    const podSync = await sync({
      client: {
        request: (request) =>
          request.method === 'PATCH' && isDown
            ? Promise.reject(new Error('connection refused'))
            : client.request(request),
        lines: (request) => client.lines(request),
      },
    });
    const delays: number[] = [];
    podSync.on('retry', ({ delayMs }) => delays.push(delayMs));
    update('app');
    await until(() => expect(delays).toHaveLength(1));
    expect(podSync.status().healthy).toBe(true);
    isDown = false;
    await clock.advance(Math.max(...delays));
    await until(() => expect(pods.filter((name) => annotation(name) === undefined)).toEqual([]));
  });
});

const FORBIDDEN = 'Cannot list pods in shop: pods is forbidden (403); grant it by RBAC';

describe('the API server', () => {
  test.each<[string, (scene: Awaited<ReturnType<typeof podSyncScene>>) => Promise<void>]>([
    [
      'forgets its history (410 Gone)',
      ({ server }) => {
        server.expireWatches();
        return Promise.resolve();
      },
    ],
    [
      'restarts',
      async ({ server }) => {
        await server.refuse();
        await server.listen();
      },
    ],
    ['ends its watches after their time', ({ pass }) => pass(310_000)],
    ['gives its list again after ten minutes', ({ pass }) => pass(600_000)],
  ])('%s, and updates before and after it arrive', async (_what, happen) => {
    const scene = await podSyncScene();
    const { server, clock, sync, until, update, annotation } = scene;
    server.putObject('configmaps', configMap('app'));
    server.putObject('pods', podOf('mounts', [app]));
    const running = await sync();
    update('app', 'before');
    await until(async () => {
      await clock.advance(1_000);
      expect(annotation('mounts')).toBeDefined();
    });
    await scene.pass(20_000);
    await happen(scene);
    const before = annotation('mounts');
    update('app', 'after');
    await until(async () => {
      await clock.advance(1_000);
      expect(annotation('mounts')?.slice(0, 16)).not.toBe(before?.slice(0, 16));
    });
    expect(running.status().behind).toBe(0);
  });

  test('restarts and has forgotten its history: everything is listed at once, which is no failure', async () => {
    const { server, clock, sync, until, update, annotation } = await podSyncScene();
    server.putObject('configmaps', configMap('app'));
    server.putObject('pods', podOf('mounts', [app]));
    const running = await sync();
    const failures: string[] = [];
    running.on('retry', ({ error }) => failures.push(error.message));
    await server.refuse();
    update('app');
    server.expireWatches();
    await server.listen();
    await until(async () => {
      await clock.advance(1_000);
      expect(annotation('mounts')).toBeDefined();
    });
    expect(failures.filter((message) => message.includes('410'))).toEqual([]);
  });

  test('refuses the pods: health says so, and all is well when RBAC allows it', async () => {
    const { clock, client, until } = await podSyncScene();
    let isForbidden = true;
    let underway = 0;
    await using running = new PodSync({
      clock,
      namespaces: ['shop'],
      client: {
        request: async (request) => {
          if (isForbidden && request.path.includes('/pods')) {
            const body = '{"message":"pods is forbidden"}';
            throw Object.assign(new Error('refused'), { code: 403, body });
          }
          underway += 1;
          return client.request(request).finally(() => (underway -= 1));
        },
        lines: (request) => client.lines(request),
      },
    });
    const unhealthy = new Promise((resolve) => running.once('unhealthy', resolve));
    const started = running.start();
    const ticking = until(async () => {
      // A request to the server takes real time, and must not time out in that of the clock.
      if (underway === 0) await clock.advance(10_000);
      expect(running.status().healthy).toBe(false);
    });
    expect(await unhealthy).toMatchObject({ error: { code: 'ERR_CLUSTER_FORBIDDEN', message: FORBIDDEN } });
    await ticking;
    expect(healthOf(running)).toMatchObject({ live: true, ready: false });
    isForbidden = false;
    await until(async () => {
      await clock.advance(30_000);
      expect(running.status().listed).toBe(true);
    });
    await started;
    expect(healthOf(running)).toMatchObject({ live: true, ready: true });
  });
});

test('a wrong option is refused', () => {
  expect(() => new PodSync({ namespaces: [] })).toThrow('must be an array of at least one name');
  expect(() => new PodSync({ splayMs: 100_000 })).toThrow(/splayMs.*maxDelayMs/);
  expect(ANNOTATION).toMatch(/^resilient-watcher/);
});
