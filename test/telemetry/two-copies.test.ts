/** Two copies of the library in one process, as two packages of a program may bring them. */
import { join } from 'node:path';

import client from 'prom-client';
import { logTo, observe, ResilientWatcher } from 'resilient-watcher';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

test('a component of either copy is in the metrics and the messages of the other, also if it has started before', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ key: 'one' });
  vi.resetModules();
  const copy = await import('resilient-watcher');
  expect(copy.ResilientWatcher).not.toBe(ResilientWatcher);
  const watcher = new copy.ResilientWatcher(volume.path('key'), { name: 'of the copy' });
  onTestFinished(() => watcher.close());
  await watcher.start();

  const registry = new client.Registry();
  using _metrics = collectMetrics({ client, registry });
  // Before it has published anything that this copy could have heard.
  expect(await registry.metrics()).toContain(
    'resilient_watcher_status{target="of the copy",state="watching"} 1',
  );
  const seen: string[] = [];
  using _observer = observe({
    point: ({ name, message }) => void seen.push(`${message.component.name}: ${name}`),
  });
  volume.publish({ key: 'two' });
  await watcher.check();

  expect(seen).toEqual(['of the copy: change']);
});

test('what a package on the other copy brings is in the log and the metrics of this one', async () => {
  const lines: string[] = [];
  const line = (_: object, text: string): void => void lines.push(text);
  using _log = logTo({ debug: line, info: line, warn: line, error: line });
  const registry = new client.Registry();
  using _metrics = collectMetrics({ client, registry });
  vi.resetModules();
  const { PodSync } = await import('@resilient-watcher/sync-pods');
  const idle = { request: () => Promise.resolve(), lines: () => [] };
  const sync = new PodSync({ client: idle as never, name: 'of the copy' });
  onTestFinished(() => sync.close());
  sync.emit('synced', { namespace: 'shop', pod: 'web', delayMs: 70 });
  expect(lines).toEqual(['PodSync "of the copy": pod shop/web patched after 70 ms']);
  expect(await registry.metrics()).toContain(
    'resilient_watcher_pod_sync_seconds_count{target="of the copy"} 1',
  );
});
