import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import client, { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';

import { TargetError } from '../../src/fs/target-error.js';
import { METRICS } from '../../src/telemetry/metrics.js';
import { collectMetrics } from '../../src/telemetry/prometheus.js';
import { AtomicVolume } from '../../src/write/atomic-volume.js';
import { SampleComponent, WATCHING } from './sample-component.js';

function collecting(): Registry {
  const registry = new Registry();
  const subscription = collectMetrics({ client, registry });
  onTestFinished(() => {
    subscription.close();
  });
  return registry;
}

/** The samples of a metric, as `labels value`; those of one component, as others may run in this process. */
async function samplesOf(registry: Registry, name: string, of = ''): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(`resilient_watcher_${name}`);
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && line.includes(of))
    .map((line) => line.replace('resilient_watcher_', ''));
}

test('the series of a component exist from its start, and its gauges until its end', async () => {
  const registry = collecting();
  const component = new SampleComponent('ResilientWatcher', 'policy', WATCHING);
  expect(await samplesOf(registry, 'status', 'policy')).toEqual([]);
  await component.start();
  expect(await samplesOf(registry, 'status', 'policy')).toEqual([
    'status{target="policy",state="watching"} 1',
    'status{target="policy",state="recovering"} 0',
    'status{target="policy",state="degraded"} 0',
    'status{target="policy",state="missing"} 0',
    'status{target="policy",state="unreadable"} 0',
  ]);
  expect(await samplesOf(registry, 'last_change_timestamp_seconds', 'policy')).toEqual([
    'last_change_timestamp_seconds{target="policy"} 1700000000',
  ]);
  component.details = { ...WATCHING, state: 'degraded', target: 'unreadable' };
  component.emitEvent('change', { cause: 'poll' });
  await component.close();
  expect(await samplesOf(registry, 'status', 'policy')).toEqual([]);
  expect(await samplesOf(registry, 'changes_total', 'policy')).toEqual([
    'changes_total{target="policy",cause="poll"} 1',
  ]);
});

test('components beyond the limit of label values share a series, which shows the worst of them', async () => {
  const registry = collecting();
  for (let index = 0; index < 256; index += 1) {
    await new SampleComponent('ResilientWatcher', `known-${index}`, WATCHING).start();
  }
  await new SampleComponent('ResilientWatcher', 'bad', { ...WATCHING, state: 'degraded' }).start();
  await new SampleComponent('ResilientWatcher', 'good', WATCHING).start();
  const shared = (await samplesOf(registry, 'status')).filter((line) => line.includes('"other"'));
  expect(shared).toContain('status{target="other",state="degraded"} 1');
});

test('a component that was started before is there at once', async () => {
  const component = new SampleComponent('ConfigLoader', 'early', {
    loadedAt: 5_000,
    reloadedAt: 5_000,
    sources: [],
  });
  await component.start();
  const registry = collecting();
  expect(await samplesOf(registry, 'config_last_reload_success_timestamp_seconds', 'early')).toEqual([
    'config_last_reload_success_timestamp_seconds{loader="early"} 5',
  ]);
  expect(await samplesOf(registry, 'config_reloads_total')).toContain(
    'config_reloads_total{loader="early",result="rejected"} 0',
  );
  await component.close();
  expect(await samplesOf(registry, 'config_last_reload_success_timestamp_seconds', 'early')).toEqual([]);
});

test('components of the same name share their series, which show the worse value', async () => {
  const registry = collecting();
  const good = new SampleComponent('ResilientWatcher', 'twin', { ...WATCHING, backend: 'sample' });
  const bad = new SampleComponent('ResilientWatcher', 'twin', {
    ...WATCHING,
    backend: 'sample',
    state: 'degraded',
    lastCheckAt: 5_000,
    watchedDirectories: ['/etc/policy', '/etc/other'],
  });
  await Promise.all([good.start(), bad.start()]);
  expect(await samplesOf(registry, 'last_check_timestamp_seconds', 'twin')).toEqual([
    'last_check_timestamp_seconds{target="twin"} 5',
  ]);
  expect(await samplesOf(registry, 'status')).toContain('status{target="twin",state="degraded"} 1');
  expect(await samplesOf(registry, 'native_watches')).toContain('native_watches{backend="sample"} 2');
});

test('names beyond 256 are counted together, so that they cannot grow the series forever', async () => {
  const registry = collecting();
  for (let nth = 0; nth < 300; nth += 1) {
    new SampleComponent('ResilientWatcher', `file-${nth}`).emitEvent('change', { cause: 'fs' });
  }
  const samples = await samplesOf(registry, 'changes_total');
  expect(samples).toHaveLength(257);
  expect(samples.at(-1)).toBe('changes_total{target="other",cause="fs"} 44');
});

test('volumes, of which a process may have many, take no names from the components that run', async () => {
  const registry = collecting();
  const directory = await mkdtemp(join(tmpdir(), 'volumes-'));
  for (let nth = 0; nth < 300; nth += 1) await new AtomicVolume(directory, { name: `volume-${nth}` }).read();
  await new SampleComponent('ResilientWatcher', 'after', WATCHING).start();
  const later = collecting();
  for (const each of [registry, later]) {
    expect(await samplesOf(each, 'status', 'after')).toContain('status{target="after",state="watching"} 1');
  }
});

test('failures are counted by their code', async () => {
  const registry = collecting();
  const component = new SampleComponent('ConfigLoader', 'app');
  component.emitEvent('unreadable', { error: new TargetError('ERR_TARGET_ACCESS', '/a', 'Denied') });
  component.emitEvent('rejected', { problems: [{ code: 'ERR_CONFIG_SCHEMA', source: 'a', message: '' }] });
  component.emitEvent('error', new TypeError('no'));
  expect(await samplesOf(registry, 'errors_total', '"app"')).toEqual([
    'errors_total{target="app",error_type="ERR_TARGET_ACCESS"} 1',
    'errors_total{target="app",error_type="ERR_CONFIG_SCHEMA"} 1',
    'errors_total{target="app",error_type="TypeError"} 1',
  ]);
});

test('closing removes the metrics, and then the registry can be used again', () => {
  const registry = new Registry();
  const first = collectMetrics({ client, registry });
  // At least: those of the packages that this process has loaded are there, too.
  expect(registry.getMetricsAsArray().length).toBeGreaterThanOrEqual(Object.keys(METRICS).length);
  expect(() => collectMetrics({ client, registry })).toThrow(
    'collectMetrics: the registry already has these metrics; close() the earlier subscription or use another registry',
  );
  first.close();
  expect(registry.getMetricsAsArray()).toEqual([]);
  collectMetrics({ client, registry }).close();
});

test('without prom-client, or with another object in its place, the message says what to install', () => {
  expect(() => collectMetrics({} as never)).toThrow(
    /"client" must be the prom-client module \(npm install prom-client/,
  );
  expect(() => collectMetrics({ client: {} as never })).toThrow(TypeError);
  expect(() => collectMetrics({ client, registry: {} as never })).toThrow(
    /"registry" must be an object with registerMetric/,
  );
});

test('close() of a subscription leaves the metrics of its successor in the registry', async () => {
  const registry = new Registry();
  const first = collectMetrics({ client, registry });
  registry.clear();
  const second = collectMetrics({ client, registry });
  first.close();
  expect(await registry.metrics()).toContain('resilient_watcher_changes_total');
  second.close();
  const third = collectMetrics({ client, registry });
  second.close();
  expect(await registry.metrics()).toContain('resilient_watcher_changes_total');
  third.close();
  expect(await registry.metrics()).toBe('\n');
});
