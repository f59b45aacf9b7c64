/**
 * What Prometheus reads over HTTP while things go wrong, in one process with every kind of component: that of the program
 * as well, since the alert rules are for the whole house.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import client, { Registry } from 'prom-client';
import {
  AtomicVolume,
  atomicWriteFile,
  BackendError,
  ResilientWatcher,
  SecretFile,
  TokenRefresher,
} from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { ReloadAction } from '@resilient-watcher/cli/action';
import { VolumePublisher } from '@resilient-watcher/csi';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { FakeTokenClient, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';

import { METRICS, prometheusName } from '../../src/telemetry/metrics.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { SampleComponent } from './sample-component.js';

/** Scrapes an endpoint, as Prometheus does. */
class Scraper {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** The value of each series, by its name and labels without the prefix. */
  async scrape(): Promise<Map<string, number>> {
    const text = await (await fetch(this.#url)).text();
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => {
        const at = line.lastIndexOf(' ');
        return [line.slice('resilient_watcher_'.length, at), Number(line.slice(at + 1))];
      }),
    );
  }

  async value(series: string): Promise<number | undefined> {
    return (await this.scrape()).get(series);
  }
}

/** A real endpoint with the metrics of this process. */
async function metricsEndpoint(): Promise<Scraper> {
  const registry = new Registry();
  const subscription = collectMetrics({ client, registry });
  const server = createServer((_request, response) => {
    void registry
      .metrics()
      .then((text) => response.setHeader('content-type', registry.contentType).end(text));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    subscription.close();
    server.closeAllConnections();
    server.close();
  });
  return new Scraper(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
}

test('swaps of a volume are visible as changes, checks and a delay', async () => {
  const scraper = await metricsEndpoint();
  const volume = new KubeletVolume(join(temporaryDirectory(), 'policy'));
  volume.publish({ 'policy.yaml': 'one' });
  // No resync: it may come in the middle of an update, and then be the cause.
  await using watcher = new ResilientWatcher(volume.path('policy.yaml'), {
    backend: 'fs',
    resyncIntervalMs: 0,
  });
  await watcher.start();
  const before = Date.now() / 1_000;
  const labels = 'target="policy.yaml",cause="fs"';

  volume.publish({ 'policy.yaml': 'two' });
  await expect.poll(() => scraper.value(`changes_total{${labels}}`)).toBe(1);
  volume.publish({ 'policy.yaml': 'three' });
  await expect.poll(() => scraper.value(`changes_total{${labels}}`)).toBe(2);
  await watcher.idle();

  const series = await scraper.scrape();
  expect(series.get('changes_total{target="policy.yaml",cause="start"}')).toBe(1);
  expect(series.get(`checks_total{${labels}}`)).toBeGreaterThanOrEqual(2);
  expect(series.get('status{target="policy.yaml",state="watching"}')).toBe(1);
  expect(series.get('warning{target="policy.yaml",code="subPath"}')).toBe(0);
  expect(series.get('native_watches{backend="fs"}')).toBeGreaterThanOrEqual(1);
  expect(series.get('change_delay_seconds_count{target="policy.yaml"}')).toBe(2);
  const delay = series.get('change_delay_seconds_sum{target="policy.yaml"}') ?? Number.NaN;
  expect(delay).toBeGreaterThanOrEqual(0);
  expect(delay).toBeLessThan(Date.now() / 1_000 - before);
  for (const what of ['change', 'check']) {
    const moment = series.get(`last_${what}_timestamp_seconds{target="policy.yaml"}`) ?? Number.NaN;
    expect(Math.abs(moment - before)).toBeLessThan(3_600);
  }
});

test('a backend that is down is visible as a restart and as degraded, until it is back', async () => {
  const scraper = await metricsEndpoint();
  const file = join(temporaryDirectory(), 'a.yaml');
  writeFileSync(file, 'one');
  const backend = new ScriptedBackend();
  await using watcher = new ResilientWatcher(file, { backend, name: 'forced', restartDelayMs: 1 });
  await watcher.start();
  const down = new BackendError('ERR_BACKEND_LIMIT', 'scripted', 'No watch is left');
  backend.refuse(...Array.from({ length: 10_000 }, () => down));
  backend.fail(down);

  const degraded = 'status{target="forced",state="degraded"}';
  await expect.poll(() => scraper.value(degraded)).toBe(1);
  const labels = '{target="forced",error_type="ERR_BACKEND_LIMIT"}';
  expect(await scraper.value(`restarts_total${labels}`)).toBeGreaterThanOrEqual(1);
  expect(await scraper.value(`errors_total${labels}`)).toBe(1);
  // What is polled has no native watch.
  const names = [...(await scraper.scrape()).keys()];
  expect(names.filter((name) => name.startsWith('native_watches'))).toEqual([]);

  backend.accept();
  await expect.poll(() => scraper.value(degraded)).toBe(0);
  expect(await scraper.value('status{target="forced",state="watching"}')).toBe(1);
});

test('a broken configuration is visible as unsuccessful, until the old contents are restored', async () => {
  const scraper = await metricsEndpoint();
  const file = join(temporaryDirectory(), 'app.json');
  writeFileSync(file, '{"port":1}');
  await using loader = new ConfigLoader({ name: 'app', sources: [{ provider: new FileProvider(file) }] });
  await loader.start();
  const successful = 'config_last_reload_successful{loader="app"}';
  const since = 'config_last_reload_success_timestamp_seconds{loader="app"}';
  expect(await scraper.value(successful)).toBe(1);
  expect(await scraper.value('config_reloads_total{loader="app",result="accepted"}')).toBe(1);
  const loaded = (await scraper.value(since)) ?? Number.NaN;

  writeFileSync(file, '{"port":');
  await expect.poll(() => scraper.value(successful)).toBe(0);
  expect(await scraper.value('config_reloads_total{loader="app",result="rejected"}')).toBeGreaterThanOrEqual(
    1,
  );
  expect(await scraper.value(since)).toBe(loaded);

  writeFileSync(file, '{"port":1}');
  await expect.poll(() => scraper.value(successful)).toBe(1);
  await expect.poll(() => scraper.value(since)).toBeGreaterThan(loaded);
});

test('every metric of the alert rules and of the dashboard is in a scrape of a process that does everything', async () => {
  const scraper = await metricsEndpoint();
  const directory = temporaryDirectory();
  const volume = new KubeletVolume(join(directory, 'policy'));
  volume.publish({ 'policy.json': '{}' });
  const backend = new ScriptedBackend();
  await using watcher = new ResilientWatcher(volume.path('policy.json'), { backend, restartDelayMs: 1 });
  await using loader = new ConfigLoader({
    sources: [{ provider: new FileProvider(volume.path('policy.json')) }],
  });
  await using refresher = new TokenRefresher({
    name: 'token',
    client: new FakeTokenClient(),
    tokenFile: false,
    sinks: [function vault() {}],
  });
  await using target = new AtomicVolume(join(directory, 'out'), { createDirectory: true });
  await using secret = new SecretFile(volume.path('policy.json'));
  await Promise.all([watcher.start(), loader.start(), refresher.start(), secret.start()]);
  await target.write({ 'a.txt': 'a' });
  await atomicWriteFile(join(directory, 'b.txt'), 'b');
  volume.publish({ 'policy.json': '{"a":1}' });
  backend.hint();
  await watcher.idle();
  backend.fail();
  await expect.poll(() => backend.subscribed).toBe(2);
  await using reload = new ReloadAction({ action: { name: 'nothing', run: () => Promise.resolve() } });
  reload.trigger({ paths: [], cause: 'check' });
  await reload.idle();
  await using _publisher = new VolumePublisher();
  const certificate = new SampleComponent('TlsFiles', 'tls', {
    state: 'running',
    expiresAt: Date.now(),
    crlExpiresAt: Date.now(),
    notBefore: Date.now(),
  });
  await certificate.start();
  certificate.emitEvent('connectionsEnded', { by: 'serveTls', connections: 1 });

  const series = await scraper.scrape();
  const scraped = new Set([...series.keys()].map((name) => name.replace(/\{.*/, '')));
  const names = Object.entries(METRICS).map(([name, metric]) =>
    prometheusName(name, metric).replace(/^resilient_watcher_/, ''),
  );
  const wanted = names.filter((name) => !scraped.has(name) && !scraped.has(`${name}_count`));
  expect(wanted).toEqual([]);
  for (const name of expressionsOf('monitoring/prometheus/rules.yaml', 'monitoring/grafana/dashboard.json')) {
    expect(scraped, name).toContain(name);
  }
  expect(series.get('token_requests_total{target="token",reason="start",result="issued"}')).toBe(1);
  expect(series.get('token_deliveries_total{target="token",sink="vault",result="delivered"}')).toBe(1);
  expect(series.get('token_expiration_timestamp_seconds{target="token"}')).toBeGreaterThan(
    Date.now() / 1_000,
  );
  expect(series.get('writes_total{result="written"}')).toBe(2);
  await certificate.close();
});

/** The names of all metrics in the files' expressions, without the prefix. */
function expressionsOf(...files: string[]): Set<string> {
  const expressions = files.flatMap((file) => valuesOf(parse(readFileSync(pathOf(file), 'utf8')), 'expr'));
  const names = expressions.flatMap(
    (expression) => expression.match(/(?<=resilient_watcher_)[a-z_]+/g) ?? [],
  );
  expect(names.length).toBeGreaterThan(10);
  return new Set(names);
}

function valuesOf(node: unknown, key: string): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([name, value]) =>
    name === key && typeof value === 'string' ? [value] : valuesOf(value, key),
  );
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(`../../${file}`, import.meta.url));
}
