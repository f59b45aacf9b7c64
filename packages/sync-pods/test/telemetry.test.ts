/** What logs and metrics say about the events of `PodSync`. */
import client, { Registry } from 'prom-client';
import { PodSync, type PodSyncPoint } from '@resilient-watcher/sync-pods';
import { logTo, observe, type Point } from 'resilient-watcher';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { expect, onTestFinished, test } from 'vitest';

function idleSync(): PodSync {
  const sync = new PodSync({ client: { request: () => Promise.resolve(), async *lines() {} }, name: 'sync' });
  onTestFinished(() => sync.close());
  return sync;
}

test('pods that are behind are one line for each namespace, with their number', () => {
  const sync = idleSync();
  const entries: string[] = [];
  const line = (_: object, text: string): void => void entries.push(text);
  const subscription = logTo({ debug: line, info: line, warn: line, error: line });
  for (const pod of ['a', 'b', 'c']) sync.emit('behind', { namespace: 'shop', pod, waitedMs: 90_000 });
  sync.emit('behind', { namespace: 'ci', pod: 'a', waitedMs: 90_000 });
  sync.emit('synced', { namespace: 'ci', pod: 'b', delayMs: 70.2 });
  const behind = (pod: string): string =>
    `PodSync "sync": pod ${pod} not patched: it has waited for 90000 ms`;
  expect(entries.splice(0)).toEqual([
    behind('shop/a'),
    behind('ci/a'),
    'PodSync "sync": pod ci/b patched after 70 ms',
  ]);
  subscription.close();
  expect(entries).toEqual([`${behind('shop/c')} (2 more since the last such line)`]);
});

test('patches are in a histogram, and pods that are behind are counted', async () => {
  const registry = new Registry();
  using _metrics = collectMetrics({ client, registry });
  const sync = idleSync();
  sync.emit('synced', { namespace: 'shop', pod: 'web', delayMs: 100 });
  sync.emit('behind', { namespace: 'shop', pod: 'web', waitedMs: 90_000 });
  const text = await registry.metrics();
  expect(text).toContain('resilient_watcher_pod_sync_seconds_sum{target="sync"} 0.1');
  expect(text).toContain('resilient_watcher_pod_sync_behind_total{target="sync"} 1');
});

test('an observer that knows the type of these events has their fields', () => {
  const seen: unknown[] = [];
  using _observer = observe({
    point(point: Point | PodSyncPoint) {
      if (point.name === 'synced') seen.push(point.message.pod, point.message.delayMs);
      if (point.name === 'retry') seen.push(point.message.error.code);
    },
  });
  idleSync().emit('synced', { namespace: 'shop', pod: 'web', delayMs: 100 });
  expect(seen).toEqual(['web', 100]);
});
