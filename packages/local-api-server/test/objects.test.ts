/** Objects of any resource, as client-node and requests of other clients meet them. */
import { request } from 'node:https';

import {
  ApiException,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type KubeConfig,
  type V1ConfigMap,
} from '@kubernetes/client-node';
import { LocalApiServer } from '@resilient-watcher/local-api-server';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { kubeConfigOf } from './support/kube-config.js';

interface Answer {
  readonly status: number;
  readonly body: { readonly [field: string]: unknown; readonly metadata: Record<string, unknown> };
}

type Call = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

interface Scene {
  readonly server: LocalApiServer;
  readonly kubeConfig: KubeConfig;
  readonly call: Call;
}

async function openScene(): Promise<Scene> {
  const server = await LocalApiServer.start();
  onTestFinished(() => server.close());
  const { token } = await server.mint('default', 'default');
  const call: Call = (method, path, body, contentType = 'application/json') =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': contentType,
        'content-length': Buffer.byteLength(text),
      };
      const sending = request(
        `${server.url}${path}`,
        { method, headers, ca: server.caPem, agent: false },
        (response) => {
          let answer = '';
          response.setEncoding('utf8').on('data', (part: string) => (answer += part));
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              body: JSON.parse(answer) as Answer['body'],
            }),
          );
        },
      );
      sending.on('error', reject).end(text);
    });
  return { server, kubeConfig: kubeConfigOf(server, token), call };
}

const WIDGETS = '/apis/example.org/v1/namespaces/shop/widgets';
const MAPS = '/api/v1/namespaces/shop/configmaps';
const widget = (name: string, more: object = {}): object => ({
  apiVersion: 'example.org/v1',
  kind: 'Widget',
  metadata: { name },
  spec: { size: 1 },
  ...more,
});
const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'ok',
    (error: unknown) => (error instanceof ApiException ? error.code : error),
  );

test('one of two that take a Lease at once gets it, and the other one a conflict', async () => {
  const { kubeConfig } = await openScene();
  const api = kubeConfig.makeApiClient(CoordinationV1Api);
  const namespace = 'shop';
  const body = {
    metadata: { name: 'leader', namespace },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
  };
  expect(await codeOf(api.readNamespacedLease({ name: 'leader', namespace }))).toBe(404);
  const created = await api.createNamespacedLease({ namespace, body });
  expect(await codeOf(api.createNamespacedLease({ namespace, body }))).toBe(409);
  const take = (holderIdentity: string): Promise<unknown> =>
    api.replaceNamespacedLease({
      ...{ name: 'leader', namespace },
      body: Object.assign({}, created, { spec: Object.assign({}, created.spec, { holderIdentity }) }),
    });
  expect(await Promise.all([codeOf(take('b')), codeOf(take('c'))])).toEqual(['ok', 409]);
  expect((await api.readNamespacedLease({ name: 'leader', namespace })).spec?.holderIdentity).toBe('b');
  const blind = { ...body, metadata: { name: 'leader' } };
  expect(await codeOf(api.replaceNamespacedLease({ name: 'leader', namespace, body: blind }))).toBe(422);
});

test('a custom resource has a status of its own, a generation, and finalizers', async () => {
  const { call } = await openScene();
  const { body: created, status } = await call('POST', WIDGETS, widget('w', { status: { ready: true } }));
  expect({ status, created }).toMatchObject({
    status: 201,
    created: { metadata: { generation: 1, namespace: 'shop' } },
  });
  expect(created['status']).toBeUndefined();
  const path = `${WIDGETS}/w`;
  const { body: ready } = await call('PUT', `${path}/status`, {
    ...created,
    spec: { size: 9 },
    status: { ready: true },
  });
  expect(ready).toMatchObject({ spec: { size: 1 }, status: { ready: true }, metadata: { generation: 1 } });
  const { body: held } = await call(
    'PATCH',
    path,
    { metadata: { finalizers: ['example.org/clean'] }, spec: { size: 2 }, status: { ready: false } },
    'application/merge-patch+json',
  );
  expect(held).toMatchObject({ spec: { size: 2 }, status: { ready: true }, metadata: { generation: 2 } });
  const { body: deleting } = await call('DELETE', path);
  expect(deleting.metadata['deletionTimestamp']).toEqual(expect.any(String));
  expect((await call('GET', path)).status).toBe(200);
  await call('PATCH', path, [{ op: 'remove', path: '/metadata/finalizers' }], 'application/json-patch+json');
  expect(await call('GET', path)).toMatchObject({
    status: 404,
    body: { reason: 'NotFound', message: 'widgets.example.org "w" not found', details: { kind: 'widgets' } },
  });
});

test('an update says what is wrong with it, and one that changes nothing is no change', async () => {
  const { call, server } = await openScene();
  const map = { metadata: { name: 'm', namespace: 'shop' }, data: { a: '1' } };
  const { body: created } = await call('POST', MAPS, map);
  expect(created).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' });
  const put = (body: object): Promise<Answer> => call('PUT', `${MAPS}/m`, body);
  const { body: same } = await put(created);
  expect(same.metadata['resourceVersion']).toBe(created.metadata['resourceVersion']);
  const { body: changed } = await put({ ...map, data: { a: '2' } });
  expect(changed.metadata['uid']).toBe(created.metadata['uid']);
  const refused = [
    await put(created),
    await put({ ...map, metadata: { ...map.metadata, uid: 'other' } }),
    await put({ ...map, metadata: { name: 'n' } }),
    await put({ ...map, metadata: { name: 'm', namespace: 'other' } }),
    await put({ ...map, kind: 'Secret' }),
    await call('PUT', `${MAPS}/none`, map),
    await call('POST', MAPS, { metadata: {} }),
    await call('POST', MAPS, { metadata: { name: 'Not_A_Name' } }),
    await call('POST', MAPS, created),
    await call('POST', '/api/v1/configmaps', map),
    await call('PUT', `${MAPS}/m/status`, map),
    await call('PATCH', `${MAPS}/m`, {}, 'application/apply-patch+yaml'),
    await call('PATCH', WIDGETS, {}),
  ];
  expect(refused.map(({ status }) => status)).toEqual([
    409, 409, 400, 400, 400, 404, 422, 422, 400, 405, 404, 415, 405,
  ]);
  expect(server.getObject('configmaps', 'shop', 'm')?.['data']).toEqual({ a: '2' });
  const { body: dry } = await call('PUT', `${MAPS}/m?dryRun=All`, { ...map, data: {} });
  expect(dry['data']).toEqual({});
  const { body: generated } = await call('POST', MAPS, { metadata: { generateName: 'g-' } });
  expect(generated.metadata['name']).toMatch(/^g-.{5}$/);
  const wrongUid = await call('DELETE', `${MAPS}/m`, { preconditions: { uid: 'other' } });
  expect([wrongUid.status, (await call('DELETE', `${MAPS}/m`)).status]).toEqual([409, 200]);
});

test.each<[string, string, unknown, unknown]>([
  ['merge', 'a member that is null is removed', { data: { a: null, c: '3' } }, { data: { b: '2', c: '3' } }],
  [
    'json',
    'is applied as a whole or not at all',
    [
      { op: 'remove', path: '/data/a' },
      { op: 'test', path: '/data/b', value: 'x' },
    ],
    422,
  ],
  [
    'json',
    'moves and copies',
    [
      { op: 'move', from: '/data/a', path: '/data/c' },
      { op: 'copy', from: '/data/b', path: '/data/d' },
    ],
    { data: { b: '2', c: '1', d: '2' } },
  ],
  [
    'json',
    'sets elements of lists',
    [
      { op: 'add', path: '/list/-', value: 3 },
      { op: 'add', path: '/list/0', value: 0 },
      { op: 'remove', path: '/list/1' },
    ],
    { list: [0, 2, 3] },
  ],
  ['json', 'reaches no prototype', [{ op: 'add', path: '/__proto__/polluted', value: 1 }], 422],
  ['json', 'of no operations is refused', { a: 1 }, 422],
  [
    'strategic-merge',
    'merges containers by name',
    {
      spec: {
        containers: [
          { name: 'b', image: 'y' },
          { name: 'a', $patch: 'delete' },
        ],
      },
    },
    { spec: { containers: [{ name: 'b', image: 'y', args: ['1'] }] } },
  ],
  ['strategic-merge', 'replaces other lists', { list: [9] }, { list: [9] }],
  [
    'strategic-merge',
    'adds finalizers and removes them',
    { metadata: { finalizers: ['x/b'], '$deleteFromPrimitiveList/finalizers': ['x/a'] } },
    { metadata: { finalizers: ['x/b'] } },
  ],
])('a %s patch: %s', async (type, _, patch, wanted) => {
  const { call, server } = await openScene();
  server.putObject('pods', {
    metadata: { namespace: 'shop', name: 'p', finalizers: ['x/a'] },
    spec: { containers: [{ name: 'a' }, { name: 'b', image: 'x', args: ['1'] }] },
    ...{ data: { a: '1', b: '2' }, list: [1, 2] },
  });
  const { status, body } = await call(
    'PATCH',
    '/api/v1/namespaces/shop/pods/p',
    patch,
    `application/${type}-patch+json`,
  );
  expect(status, JSON.stringify(body)).toBe(typeof wanted === 'number' ? wanted : 200);
  if (typeof wanted === 'object') expect(body).toMatchObject(Object(wanted) as object);
  if (type === 'merge') expect(body['data']).toEqual({ b: '2', c: '3' });
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

test('lists take selectors and pages, each page of the version of the first one', async () => {
  const { call, server } = await openScene();
  for (const name of ['c', 'a', 'b', 'd']) {
    server.putObject('configmaps', {
      metadata: { namespace: 'shop', name, labels: { tier: name < 'c' ? 'x' : 'y' } },
    });
  }
  server.putObject('configmaps', { metadata: { namespace: 'other', name: 'z', labels: { free: '' } } });
  const names = async (query: string, path = '/api/v1/configmaps'): Promise<unknown> => {
    const { status, body } = await call('GET', `${path}?${query}`);
    return status === 200
      ? (body['items'] as Answer['body'][]).map(({ metadata }) => metadata['name']).join('')
      : status;
  };
  const label = (selector: string): Promise<unknown> =>
    names(`labelSelector=${encodeURIComponent(selector)}`);
  expect([
    await label('tier=x'),
    await label('tier==y,tier!=x'),
    await label('tier in (x, z)'),
    await label('tier notin (x)'),
    await label('!tier'),
    await label('tier,!free'),
    await label('tier in'),
    await names('fieldSelector=metadata.name%3Dc'),
    await names('fieldSelector=metadata.namespace!%3Dshop'),
    await names('', MAPS),
  ]).toEqual(['ab', 'cd', 'ab', 'zcd', 'z', 'abcd', 400, 'c', 'z', 'abcd']);

  const { body: first } = await call('GET', `${MAPS}?limit=3`);
  expect(first.metadata).toMatchObject({ remainingItemCount: 1 });
  server.deleteObject('configmaps', 'shop', 'd');
  server.putObject('configmaps', { metadata: { namespace: 'shop', name: 'e' } });
  const next = `limit=3&continue=${String(first.metadata['continue'])}`;
  expect(await names(next, MAPS)).toBe('d');
  expect(
    await names(
      `resourceVersion=${String(first.metadata['resourceVersion'])}&resourceVersionMatch=Exact`,
      MAPS,
    ),
  ).toBe('abcd');
  server.expireWatches();
  expect([
    await names(next, MAPS),
    await names('continue=x', MAPS),
    await names('resourceVersion=999', MAPS),
  ]).toEqual([410, 400, 504]);
  expect((await call('DELETE', `${MAPS}?labelSelector=tier`)).status).toBe(200);
  expect(await names('')).toBe('ze');
});

test('an informer of client-node follows a custom resource through conflicts and lost history', async () => {
  const { kubeConfig, call, server } = await openScene();
  const api = kubeConfig.makeApiClient(CustomObjectsApi);
  const list = (): Promise<{ items: V1ConfigMap[] }> =>
    api.listNamespacedCustomObject({
      group: 'example.org',
      version: 'v1',
      namespace: 'shop',
      plural: 'widgets',
    }) as Promise<{ items: V1ConfigMap[] }>;
  const informer = makeInformer(kubeConfig, WIDGETS, list as never);
  onTestFinished(() => informer.stop());
  const seen = (event: 'add' | 'update' | 'delete', name: string): Promise<unknown> =>
    new Promise((resolve) =>
      informer.on(event, ({ metadata }) => {
        if (metadata?.name === name) resolve(undefined);
      }),
    );
  const added = seen('add', 'w');
  await informer.start();
  await call('POST', WIDGETS, widget('w'));
  await added;
  const updated = seen('update', 'w');
  await call('PATCH', `${WIDGETS}/w`, { spec: { size: 2 } }, 'application/merge-patch+json');
  await updated;
  const restart = (): void => void informer.start();
  informer.on('error', restart);
  // Once the server is closed, it would start for ever.
  onTestFinished(() => informer.off('error', restart));
  server.expireWatches();
  const gone = seen('delete', 'w');
  await call('DELETE', `${WIDGETS}/w`);
  await gone;
});

test('a watch begins at a version, with what exists without one, and ends with 410 at one that is forgotten', async () => {
  const { kubeConfig, server } = await openScene();
  const put = (name: string, label: string): string =>
    server.putObject('widgets.v1.example.org', {
      metadata: { namespace: 'shop', name, labels: { l: label } },
    }).metadata.resourceVersion;
  const version = put('a', 'x');
  put('b', 'x');
  const watch = new Watch(kubeConfig);
  const follow = async (query: Record<string, string>, count: number): Promise<string[]> => {
    const events: string[] = [];
    let enough = (): void => undefined;
    const done = new Promise<void>((resolve) => (enough = resolve));
    const controller = await watch.watch(
      WIDGETS,
      query,
      (type, object: { metadata?: { name?: string }; code?: number }) => {
        events.push(`${type} ${object.metadata?.name ?? object.code}`);
        if (events.length === count) enough();
      },
      () => enough(),
    );
    onTestFinished(() => controller.abort());
    await done;
    return events;
  };
  expect(await follow({}, 2)).toEqual(['ADDED a', 'ADDED b']);
  put('a', 'y');
  server.deleteObject('widgets.v1.example.org', 'shop', 'b');
  const since = { resourceVersion: version };
  expect(await follow(since, 3)).toEqual(['ADDED b', 'MODIFIED a', 'DELETED b']);
  expect(await follow({ ...since, labelSelector: 'l=x' }, 3)).toEqual(['ADDED b', 'DELETED a', 'DELETED b']);
  server.expireWatches();
  expect(await follow(since, 1)).toEqual(['ERROR 410']);
});

test('a watch that has ended has no timer, although it has sent bookmarks', async () => {
  const clock = new FakeClock(Date.now());
  const server = await LocalApiServer.start({ clock });
  onTestFinished(() => server.close());
  const { token } = await server.mint('default', 'default');
  const before = clock.pending;
  const bookmarks: string[] = [];
  const query = { allowWatchBookmarks: true };
  const controller = await new Watch(kubeConfigOf(server, token)).watch(
    MAPS,
    query,
    (type) => void bookmarks.push(type),
    () => undefined,
  );
  await expect.poll(() => clock.pending).toBeGreaterThan(before);
  for (const count of [1, 2]) {
    await clock.advance(60_000);
    await expect.poll(() => bookmarks).toHaveLength(count);
  }
  controller.abort();
  await expect.poll(() => clock.pending).toBe(before);
});

test('objects outside namespaces, definitions and discovery', async () => {
  const { call, kubeConfig } = await openScene();
  const core = kubeConfig.makeApiClient(CoreV1Api);
  await core.createNamespace({ body: { metadata: { name: 'shop' } } });
  const patched = await core.patchNamespaceStatus(
    { name: 'shop', body: { status: { phase: 'Active' } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  );
  expect(patched.status?.phase).toBe('Active');
  expect((await core.listNamespace()).items).toHaveLength(1);
  const names = { plural: 'gadgets', singular: 'gadget', kind: 'GadgetThing' };
  const spec = {
    group: 'example.org',
    scope: 'Cluster',
    names,
    versions: [{ name: 'v1', served: true, storage: true }],
  };
  await call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'gadgets.example.org' },
    spec,
  });
  const { body: groups } = await call('GET', '/apis');
  expect(groups['groups']).toEqual(
    expect.arrayContaining([expect.objectContaining({ name: 'example.org' })]),
  );
  const { body: resources } = await call('GET', '/apis/example.org/v1');
  expect(resources['resources']).toEqual([
    expect.objectContaining({ name: 'gadgets', kind: 'GadgetThing', namespaced: false }),
  ]);
  const gadgets = '/apis/example.org/v1/gadgets';
  expect((await call('GET', gadgets)).body['kind']).toBe('GadgetThingList');
  // Without a subresource, the status is a part of the object.
  const { body: created } = await call('POST', gadgets, { metadata: { name: 'g' }, status: { ready: true } });
  expect(created).toMatchObject({ kind: 'GadgetThing', status: { ready: true } });
  expect((await call('PUT', `${gadgets}/g/status`, created)).status).toBe(404);
  expect(
    (await call('POST', '/apis/example.org/v1/namespaces/shop/gadgets', { metadata: { name: 'g' } })).status,
  ).toBe(405);
  expect((await call('GET', '/apis/example.org/v1/widgets')).body['kind']).toBe('WidgetList');
});

test('a resource is named as kubectl does', async () => {
  const { server } = await openScene();
  const object = { metadata: { name: 'x' } };
  expect(server.putObject('policies.v1beta1.example.org', object)).toMatchObject({
    kind: 'Policy',
    apiVersion: 'example.org/v1beta1',
  });
  expect(server.getObject('policies.v1beta1.example.org', '', 'x')).toMatchObject(object);
  for (const wrong of ['apps/v1/deployments', 'Pods', 'leases.coordination.k8s.io', '']) {
    expect(() => server.putObject(wrong, object), wrong).toThrow(/a resource is a plural/);
  }
});
