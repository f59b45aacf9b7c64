/** `PodSync` beside what is no fault of its own: load balancers, slow servers, and many namespaces. */
import type { ClusterClient, ClusterRequest } from 'resilient-watcher/kubernetes';
import { PodSync, type PodSyncOptions } from '@resilient-watcher/sync-pods';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { answered, MemoryCluster } from './support/memory-cluster.js';
import { ANNOTATION, podOf } from './support/pod-sync-scene.js';

const queryOf = ({ path }: ClusterRequest): URLSearchParams => new URL(path, 'http://server').searchParams;
const named = (index: number): object => ({
  metadata: { namespace: 'shop', name: `p${index}`, uid: `u${index}`, resourceVersion: '1' },
});

/** Ends with the signal. */
const ended = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

async function* silence({ signal }: ClusterRequest): AsyncGenerator<string> {
  yield await ended(signal);
}

function begin(client: ClusterClient, clock: FakeClock, options?: PodSyncOptions) {
  const sync = new PodSync({ client, clock, namespaces: ['shop'], random: () => 0, ...options });
  onTestFinished(() => sync.close());
  const failures: string[] = [];
  sync.on('retry', ({ error }) => failures.push(error.message));
  sync.start().catch(() => {});
  return { sync, failures };
}

/** A cluster whose watches fail as `broken` says. */
function withWatches(cluster: ClusterClient, broken: () => Error | undefined): ClusterClient {
  return {
    request: (request) => cluster.request(request),
    async *lines(request) {
      const error = broken();
      if (error) throw error;
      yield* cluster.lines(request);
    },
  };
}

test('health: watches that fail and then last without an event are well, without bookmarks', async () => {
  const [clock, cluster] = [new FakeClock(), new MemoryCluster()];
  cluster.fill('shop', ['web']);
  let isAway = true;
  const { sync } = begin(
    withWatches(cluster, () => (isAway ? answered(503, 'unavailable') : undefined)),
    clock,
  );
  await clock.advance(20_000);
  expect(sync.status()).toMatchObject({ listed: true, healthy: false });
  isAway = false;
  await clock.advance(40_000);
  expect(sync.status().healthy).toBe(true);
});

test('health: watches that a gateway refuses after a minute are not well, although each has lasted', async () => {
  const [clock, cluster] = [new FakeClock(), new MemoryCluster()];
  cluster.fill('shop', ['web']);
  const client: ClusterClient = {
    request: (request) => cluster.request(request),

    async *lines() {
      await new Promise<void>((resolve) => clock.schedule(resolve, 60_000));
      throw answered(504, 'gateway timeout');
    },
  };
  const { sync } = begin(client, clock);
  await clock.advance(400_000);
  expect(sync.status().healthy).toBe(false);
});

test.each<[string, Error | undefined]>([
  ['cuts', Object.assign(new Error('aborted'), { code: 'ECONNRESET' })],
  ['ends', undefined],
])('a load balancer that %s each watch after 55 s causes no further patches', async (_what, error) => {
  const [clock, cluster] = [new FakeClock(), new MemoryCluster()];
  cluster.fill('shop', ['web']);
  const client: ClusterClient = {
    request: (request) => cluster.request(request),
    async *lines(request) {
      const cut = new AbortController();
      const timer = clock.schedule(() => cut.abort(error), 55_000);
      const signal = AbortSignal.any([request.signal, cut.signal]);
      try {
        yield* cluster.lines({ ...request, signal });
      } catch (thrown) {
        if (error || !cut.signal.aborted) throw thrown;
      } finally {
        timer.cancel();
      }
    },
  };
  const { sync } = begin(client, clock);
  await clock.advance(1_000);
  for (let change = 1; change <= 5; change += 1) {
    await clock.advance(120_000);
    cluster.change('shop');
  }
  await clock.advance(120_000);
  expect(sync.status()).toMatchObject({ synced: 5, repeated: 0 });
});

test('an outage that a load balancer answers with 503 is one: the change after it is patched again', async () => {
  const [clock, cluster] = [new FakeClock(), new MemoryCluster()];
  cluster.fill('shop', ['web']);
  let cut = new AbortController();
  let isAway = false;
  const watched: ClusterClient = {
    request: (request) => cluster.request(request),
    lines: (request) => cluster.lines({ ...request, signal: AbortSignal.any([request.signal, cut.signal]) }),
  };
  const client = withWatches(watched, () => (isAway ? answered(503, 'unavailable') : undefined));
  const { sync } = begin(client, clock);
  await clock.advance(60_000);
  isAway = true;
  cut.abort(new Error('aborted'));
  cut = new AbortController();
  await clock.advance(5_000);
  isAway = false;
  await clock.advance(10_000);
  cluster.change('shop');
  await clock.advance(60_000);
  expect(sync.status()).toMatchObject({ synced: 1, repeated: 4 });
});

test('a page without items that names another page is not the end of the list', async () => {
  const clock = new FakeClock();
  const pod = { ...podOf('web', [{ configMap: { name: 'app' } }]), ...named(0) };
  const { sync, failures } = begin(
    {
      request: (request) => {
        const [from, isPods] = [queryOf(request).get('continue'), request.path.includes('/pods')];
        const page = (items: object[], next?: string) =>
          Promise.resolve({ metadata: { resourceVersion: '7', continue: next }, items });
        if (!isPods || from === 'third') return page(isPods ? [pod] : []);
        return page([], from === null ? 'second' : 'third');
      },

      async *lines(request) {
        if (request.path.includes('sendInitialEvents')) throw answered(422, 'not supported');
        await ended(request.signal);
      },
    },
    clock,
  );
  await clock.advance(1_000);
  expect(sync.status()).toMatchObject({ listed: true, pods: 1 });
  expect(failures).toEqual([]);
});

test('pages that take too long become smaller, and stay small until the list is complete', async () => {
  const clock = new FakeClock();
  const limits: number[] = [];
  const client: ClusterClient = {
    async request(request) {
      const [limit, from] = ['limit', 'continue'].map((name) => Number(queryOf(request).get(name) ?? 0));
      if (request.path.includes('/pods')) return { metadata: { resourceVersion: '7' }, items: [] };
      limits.push(limit ?? 0);
      // A tenth of a second for each object, and a signal that nobody hears.
      await new Promise<void>((resolve) => clock.schedule(resolve, (limit ?? 0) * 200));
      const end = Math.min((from ?? 0) + (limit ?? 0), 300);
      const items = Array.from({ length: end - (from ?? 0) }, (_, index) => named((from ?? 0) + index));
      return { metadata: { resourceVersion: '7', ...(end < 300 && { continue: String(end) }) }, items };
    },

    async *lines(request) {
      if (request.path.includes('sendInitialEvents')) throw answered(422, 'not supported');
      await ended(request.signal);
    },
  };
  const { sync, failures } = begin(client, clock);
  await clock.advance(120_000);
  expect(sync.status()).toMatchObject({ listed: true, objects: 300, healthy: true });
  expect(limits.filter((limit) => limit > 150)).toHaveLength(1);
  expect(failures).toEqual(['Cannot list configmaps in shop: the list took over 30000 ms']);
});

test('start() is not delayed by a server that knows no streaming lists and has new objects all the time', async () => {
  const clock = new FakeClock();
  let isStarted = false;
  const client: ClusterClient = {
    request: (request) => {
      const next = queryOf(request).get('continue') === null && request.path.includes('/configmaps');
      const metadata = { resourceVersion: '7', ...(next && { continue: 'x' }) };
      return Promise.resolve({
        metadata,
        items: request.path.includes('/pods') ? [] : [named(next ? 1 : 2)],
      });
    },
    async *lines(request) {
      for (let index = 0; ; index += 1) {
        if (!request.path.includes('/configmaps')) await ended(request.signal);
        await new Promise<void>((resolve) => clock.schedule(resolve, 50));
        request.signal.throwIfAborted();
        yield JSON.stringify({ type: 'ADDED', object: named(index) });
      }
    },
  };
  const { sync } = begin(client, clock);
  void sync.start().then(() => (isStarted = true));
  await clock.advance(15_000);
  expect(isStarted).toBe(true);
});

test('two changes at the same time of the clock are both delivered', async () => {
  const [clock, cluster] = [new FakeClock(), new MemoryCluster()];
  cluster.fill('shop', ['web']);
  let answer = (): void => {};
  let isHeld = true;
  const { sync } = begin(
    {
      request: async (request) => {
        if (request.method === 'PATCH' && isHeld) await new Promise<void>((resolve) => (answer = resolve));
        return cluster.request(request);
      },
      lines: (request) => cluster.lines(request),
    },
    clock,
  );
  await clock.advance(100);
  cluster.change('shop');
  await clock.advance(0);
  cluster.change('shop');
  await clock.advance(0);
  isHeld = false;
  answer();
  await clock.advance(5_000);
  expect(sync.status()).toMatchObject({ synced: 2, waiting: 0 });
});

test('the work of a start with many outdated pods does not grow with their namespaces', async () => {
  const clock = new FakeClock();
  const timeOf = async (namespaces: number): Promise<number> => {
    const pods = Array.from({ length: 6_000 }, (_, index) => ({
      ...podOf('web', [{ configMap: { name: 'app' } }]),
      metadata: {
        namespace: `ns${index % namespaces}`,
        name: `p${index}`,
        uid: `u${index}`,
        resourceVersion: '5',
        annotations: { [ANNOTATION]: 'old' },
      },
    }));
    const maps = Array.from({ length: namespaces }, (_, index) => ({
      metadata: { namespace: `ns${index}`, name: 'app', uid: `m${index}`, resourceVersion: '4' },
    }));
    let spent = 0;
    const client: ClusterClient = {
      async request({ method, path, signal }) {
        if (method !== 'GET') return ended(signal);
        if (!path.includes('/pods')) return { metadata: { resourceVersion: '9' }, items: maps };
        await clock.advance(100);
        const before = process.cpuUsage();
        setImmediate(() => (spent = process.cpuUsage(before).user));
        return { metadata: { resourceVersion: '9' }, items: pods };
      },
      lines: silence,
    };
    const sync = new PodSync({ client, clock });
    onTestFinished(() => sync.close());
    await sync.start();
    await expect.poll(() => sync.status().waiting).toBe(pods.length);
    await expect.poll(() => spent).toBeGreaterThan(0);
    return spent;
  };
  const few = Math.min(await timeOf(10), await timeOf(10));
  const many = Math.min(await timeOf(6_000), await timeOf(6_000));
  // Forty times as long, if each pod goes over all namespaces.
  expect(many).toBeLessThan(8 * few);
});
