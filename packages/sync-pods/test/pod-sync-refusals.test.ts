/** Patches that fail: what waits for what, and what health says. */
import { type ClusterClient } from 'resilient-watcher/kubernetes';
import { PodSync, type PodSyncOptions } from '@resilient-watcher/sync-pods';
import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { ANNOTATION } from './support/pod-sync-scene.js';
import { answered, MemoryCluster, type Reason, type Refusal } from './support/memory-cluster.js';

const MANY = Array.from({ length: 40 }, (_, number) => `web-${number}`);

const FAILING_WEBHOOK =
  'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.shop.svc:443/": dial tcp 10.0.0.1:443: connect: connection refused';
const denied = (name: string): string =>
  `pods "${name}" is forbidden: violates PodSecurity "restricted:latest"`;
/** A webhook need not give a reason. */
const byWebhook = {};
const namesPod = { reason: 'Invalid', details: { name: 'web-0', kind: 'pods' } };

interface Retry {
  readonly message: string;
  readonly code: string;
  readonly request: string;
}

/** A running `PodSync`, and what it says. */
async function running(options: PodSyncOptions & { readonly clock: FakeClock }): Promise<{
  readonly sync: PodSync;
  readonly retries: Retry[];
  /** The messages of `unhealthy`, and `healthy`. */
  readonly events: string[];
  /** Lets time pass until it is so; at most ten minutes. */
  until(isSo: () => boolean): Promise<void>;
}> {
  const sync = new PodSync({ random: () => 0, ...options });
  onTestFinished(() => sync.close());
  const retries: Retry[] = [];
  const events: string[] = [];
  sync.on('retry', ({ error: { message, code }, request }) => retries.push({ message, code, request }));
  sync.on('unhealthy', ({ error }) => events.push(error.message));
  sync.on('healthy', () => events.push('healthy'));
  await sync.start();
  const until = async (isSo: () => boolean): Promise<void> => {
    for (let seconds = 0; !isSo() && seconds < 600; seconds += 1) await options.clock.advance(1_000);
    expect(isSo()).toBe(true);
  };
  return { sync, retries, events, until };
}

/** One of namespaces with these pods, which are up to date. */
async function scene(pods: Readonly<Record<string, readonly string[]>>, options?: PodSyncOptions) {
  const clock = new FakeClock();
  const cluster = new MemoryCluster();
  for (const [namespace, names] of Object.entries(pods)) cluster.fill(namespace, names);
  const namespaces = Object.keys(pods);
  return { clock, cluster, ...(await running({ client: cluster, namespaces, ...options, clock })) };
}

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

describe('a namespace whose pods cannot be patched', () => {
  test.each<[string, (signal: AbortSignal) => Refusal]>([
    ['because a webhook cannot be reached (500)', () => [500, FAILING_WEBHOOK]],
    ['because a webhook does not answer', (signal) => never(signal)],
    [
      'because a webhook denies it with 503',
      () => [503, 'admission webhook "w" denied the request: no', byWebhook],
    ],
    ['because the answer is 500', () => [500, '']],
  ])('%s, does not delay the others', async (_what, refusal) => {
    const { clock, cluster, sync } = await scene(
      { shop: MANY, bank: ['teller'] },
      { maxPatchesPerSecond: 5, burst: 10 },
    );
    cluster.refuse = ({ namespace, signal }) => (namespace === 'shop' ? refusal(signal) : undefined);
    cluster.change('shop');
    await clock.advance(1_000);
    for (let change = 1; change < 20; change += 1) {
      cluster.change('bank');
      await clock.advance(2_000);
      expect(sync.status().synced).toBe(change);
    }
  });

  test('is reported with its name, asked seldom, and patched once it can be', async () => {
    const { clock, cluster, sync, retries, events, until } = await scene({ shop: MANY, bank: ['teller'] });
    cluster.refuse = ({ namespace }) => (namespace === 'shop' ? [500, FAILING_WEBHOOK] : undefined);
    cluster.change('shop');
    await until(() => !sync.status().healthy);
    expect(events[0]).toContain('Cannot patch pods in shop: Internal error occurred: failed calling webhook');
    await clock.advance(20_000);
    expect(cluster.patches.length).toBeLessThan(40);
    expect(new Set(retries.map(({ request }) => request))).toEqual(new Set(['patch pods in shop']));
    cluster.refuse = () => undefined;
    await until(() => sync.status().synced === MANY.length);
    expect(sync.status()).toMatchObject({ healthy: true, behind: 0 });
  });

  test('is no reason to ask an API server that is away more than one thing at a time', async () => {
    const { clock, cluster, sync, retries, until } = await scene({ shop: MANY, bank: MANY, mine: MANY });
    cluster.refuse = () => new Error('connection refused');
    for (const namespace of ['shop', 'bank', 'mine']) cluster.change(namespace);
    await clock.advance(30_000);
    expect(new Set(retries.map(({ request }) => request))).toEqual(new Set(['patch pods']));
    // Those that were in flight at once, and one every few seconds.
    expect(cluster.patches.length).toBeLessThan(60);
    expect(sync.status().healthy).toBe(false);
    cluster.refuse = () => undefined;
    await until(() => sync.status().synced === 3 * MANY.length);
    expect(sync.status().healthy).toBe(true);
  });
});

describe('a pod that is refused', () => {
  test.each<[string, number, string, Reason?]>([
    [
      'by a policy (422)',
      422,
      `pods "web-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
      namesPod,
    ],
    ['by a policy that says it is a matter of authentication (401)', 401, 'no', namesPod],
    ['by Pod Security (403)', 403, denied('web-0')],
    ['by a webhook (400)', 400, 'admission webhook "w" denied the request: no', byWebhook],
    [
      'by a webhook (403)',
      403,
      'admission webhook "w" denied the request: you cannot patch "web-1"',
      byWebhook,
    ],
    ['by a webhook (429)', 429, 'admission webhook "w" denied the request: too many', byWebhook],
    ['with 500 and its name', 500, 'Internal error occurred: it is odd', namesPod],
  ])('%s is named and does not concern the others, nor health', async (_what, status, message, rest) => {
    const { clock, cluster, sync, retries, events } = await scene({ shop: MANY });
    cluster.refuse = ({ name }) => (name === 'web-0' ? [status, message, rest] : undefined);
    cluster.change('shop');
    await clock.advance(100_000);
    expect(sync.status()).toMatchObject({ synced: MANY.length - 1, behind: 1, healthy: true });
    expect(events).toEqual([]);
    expect(new Set(retries.map((retry) => retry.message))).toEqual(
      new Set([`Cannot patch pod shop/web-0: ${message} (${status})`]),
    );
    expect(retries[0]?.code).toBe('ERR_CLUSTER_REQUEST');
  });

  test('counts once: with three of them and no patch in between, the next will hardly succeed; a dry run says more', async () => {
    const { cluster, sync, events, until } = await scene({ shop: MANY }, { random: () => 0.999 });
    cluster.refuse = ({ name }) => (name === 'web-39' ? undefined : [403, denied(name)]);
    cluster.deletePod('shop', 'web-39');
    cluster.change('shop');
    await until(() => sync.status().behind === MANY.length - 1);
    expect(sync.status().healthy).toBe(false);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatch(/^Cannot patch pod shop\/web-\d+: .* \(403\)$/);
    cluster.putPod('shop', 'web-39');
    await until(() => sync.status().healthy);
  });

  test.each(['web-0', 'uid-generator-0'])('with 409 is tried again, and not forgotten: %s', async (pod) => {
    const { cluster, sync, retries, until } = await scene({ shop: [pod] });
    const message = `Operation cannot be fulfilled on pods "${pod}": the object has been modified; please apply your changes to the latest version and try again`;
    let conflicts = 2;
    cluster.refuse = () => ((conflicts -= 1) >= 0 ? [409, message] : undefined);
    cluster.change('shop');
    await until(() => sync.status().synced === 1);
    expect(retries.map((retry) => retry.message)).toEqual(
      Array(2).fill(`Cannot patch pod shop/${pod}: ${message} (409)`),
    );
  });

  test('because of a label that is not valid is tried again, although the message quotes a uid', async () => {
    const { cluster, sync, until } = await scene({ shop: ['web-0'] });
    const details = { name: 'web-0', kind: 'Pod', causes: [{ field: 'metadata.labels' }] };
    let refusals = 2;
    cluster.refuse = () =>
      (refusals -= 1) >= 0 ? [422, 'metadata.labels: Invalid value: "the uid"', { details }] : undefined;
    cluster.change('shop');
    await until(() => sync.status().synced === 1);
  });

  test.each<[number, string, Reason?]>([
    [404, 'pods "web-0" not found'],
    [
      422,
      'Pod "web-0" is invalid: metadata.uid: Invalid value: "u": field is immutable',
      {
        reason: 'Invalid',
        details: {
          name: 'web-0',
          kind: 'Pod',
          causes: [{ reason: 'FieldValueInvalid', field: 'metadata.uid' }],
        },
      },
    ],
  ])('because it is gone (%d) is no failure, and not tried again', async (status, message, rest) => {
    const { clock, cluster, sync, retries } = await scene({ shop: ['web-0'] });
    cluster.refuse = () => [status, message, rest];
    cluster.change('shop');
    await clock.advance(60_000);
    expect(cluster.patches).toHaveLength(1);
    expect(retries).toEqual([]);
    expect(sync.status()).toMatchObject({ healthy: true, waiting: 0, lastError: null });
  });

  test('by a 404 that is no answer of the API server is a failure', async () => {
    const { cluster, sync, until } = await scene({ shop: ['web-0'] });
    cluster.refuse = () =>
      Object.assign(new Error('404 page not found'), { code: 404, body: '404 page not found' });
    cluster.change('shop');
    await until(() => !sync.status().healthy);
  });
});

describe('health', () => {
  test('without permission says so until it is granted, although no pod waits any more', async () => {
    const { clock, cluster, sync, retries, events, until } = await scene({ shop: MANY });
    cluster.forbidden.add('shop');
    cluster.change('shop');
    await until(() => sync.status().behind === MANY.length);
    await clock.advance(300_000);
    expect(sync.status()).toMatchObject({ healthy: false, waiting: 0, synced: 0 });
    expect(events).toEqual([expect.stringMatching(/^Cannot patch pods in shop: .*; grant it by RBAC$/)]);
    // One for each attempt of the namespace, not for each pod.
    expect(retries.length).toBeLessThan(30);
    expect(cluster.patches.at(-1)).toMatchObject({ namespace: 'shop', isDryRun: true });
    cluster.forbidden.clear();
    await until(() => sync.status().healthy);
    expect(events.at(-1)).toBe('healthy');
    expect(cluster.annotation('shop', 'web-0')).toBeUndefined();
  });

  test('after the API server was away recovers by a dry run when another replica has patched the pods', async () => {
    const clock = new FakeClock();
    const cluster = new MemoryCluster();
    cluster.fill('shop', []);
    cluster.putPod('shop', 'web-0', { [ANNOTATION]: 'old' });
    let isAway = true;
    const client: ClusterClient = {
      request: (request) =>
        isAway && request.method === 'PATCH'
          ? Promise.reject(new Error('connection refused'))
          : cluster.request(request),
      lines: (request) => cluster.lines(request),
    };
    const { sync, until } = await running({ client, clock, namespaces: ['shop'] });
    await until(() => !sync.status().healthy);
    const { sync: other } = await running({ client: cluster, clock, namespaces: ['shop'] });
    await until(() => other.status().synced === 1);
    isAway = false;
    await until(() => sync.status().healthy);
    expect(sync.status()).toMatchObject({ synced: 0, waiting: 0 });
    expect(cluster.patches.map(({ isDryRun }) => isDryRun)).toEqual([false, true]);
  });

  test.each<[string, Refusal]>([
    ['namespace', [500, FAILING_WEBHOOK]],
    ['API server', new Error('connection refused')],
  ])('of the %s is good again once no pod is left that could not be patched', async (_what, refusal) => {
    const { cluster, sync, until } = await scene({ shop: ['web-0'] });
    cluster.refuse = () => refusal;
    cluster.change('shop');
    await until(() => !sync.status().healthy);
    cluster.deletePod('shop', 'web-0');
    await until(() => sync.status().healthy);
    expect(sync.status().behind).toBe(0);
  });

  test('is not asked of a webhook that knows no dry run', async () => {
    const { cluster, sync, until } = await scene({ shop: ['web-0'] });
    cluster.refuse = () => [500, FAILING_WEBHOOK];
    cluster.change('shop');
    await until(() => !sync.status().healthy && sync.status().waiting === 0);
    cluster.refuse = ({ isDryRun }) =>
      isDryRun
        ? [400, 'admission webhook "w" does not support dry run', { reason: 'BadRequest' }]
        : undefined;
    await until(() => sync.status().healthy);
  });

  test('is not lost by a 403 that passes, which advises nothing', async () => {
    const { cluster, sync, retries, until } = await scene({ shop: ['web-0'] });
    cluster.forbidden.add('shop');
    cluster.change('shop');
    await until(() => retries.length > 1);
    cluster.forbidden.clear();
    await until(() => sync.status().synced === 1);
    expect(retries).toHaveLength(2);
    for (const { message, code } of retries) {
      expect(message).not.toContain('RBAC');
      expect(code).toBe('ERR_CLUSTER_FORBIDDEN');
    }
  });

  test('says nothing of a patch that was not needed', async () => {
    const { cluster, sync, until } = await scene({ shop: ['web-0'], bank: ['teller'] });
    cluster.refuse = () => answered(503, 'unavailable');
    cluster.change('shop');
    await until(() => !sync.status().healthy);
    const sent = cluster.patches.length;
    cluster.change('bank');
    await until(() => cluster.patches.length > sent);
    expect(sync.status().healthy).toBe(false);
  });
});
