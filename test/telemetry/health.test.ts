import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { fastify } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';

import { healthHandler, healthOf } from '../../src/telemetry/health.js';
import { SampleComponent, WATCHING } from './sample-component.js';

const SOURCE = { name: '/etc/app.yaml', digest: null, problems: [] };

async function running(kind: string, details: object): Promise<SampleComponent> {
  const component = new SampleComponent(kind, 'it', { state: 'running', ...details });
  await component.start();
  return component;
}

const WATCHER = 'ResilientWatcher';

test.each<[what: string, kind: string, details: object, verdict: 'ready' | 'live' | 'dead']>([
  ['a watcher that checks', WATCHER, WATCHING, 'ready'],
  ['a watcher that polls', WATCHER, { ...WATCHING, state: 'degraded' }, 'ready'],
  [
    'a watcher of a subPath mount',
    WATCHER,
    { ...WATCHING, warnings: [{ code: 'subPath', message: '' }] },
    'ready',
  ],
  ['a watcher whose file is gone', WATCHER, { ...WATCHING, target: 'missing' }, 'ready'],
  ['a watcher that has seen nothing yet', WATCHER, { ...WATCHING, target: 'missing', changes: 0 }, 'live'],
  [
    'a watcher without a check for three intervals',
    WATCHER,
    { ...WATCHING, sinceLastCheckMs: 15_000 },
    'ready',
  ],
  ['a watcher without a check for longer', WATCHER, { ...WATCHING, sinceLastCheckMs: 15_001 }, 'dead'],
  [
    'a watcher that need not check',
    WATCHER,
    { ...WATCHING, sinceLastCheckMs: 1e9, checkIntervalMs: null },
    'ready',
  ],
  [
    'a configuration in use',
    'ConfigLoader',
    { loadedAt: 1, sources: [{ ...SOURCE, state: 'current' }] },
    'ready',
  ],
  ['a rejected reload', 'ConfigLoader', { loadedAt: 1, sources: [{ ...SOURCE, state: 'rejected' }] }, 'live'],
  ['a configuration not loaded yet', 'ConfigLoader', { loadedAt: null, sources: [] }, 'live'],
  ['a good token', 'TokenRefresher', { healthy: true, expired: false, lastMintAt: 1 }, 'ready'],
  ['no token yet', 'TokenRefresher', { healthy: true, expired: false, lastMintAt: null }, 'live'],
  [
    'a refresher whose requests fail',
    'TokenRefresher',
    { healthy: false, expired: false, lastMintAt: 1 },
    'ready',
  ],
  ['an expired token', 'TokenRefresher', { healthy: false, expired: true, lastMintAt: 1 }, 'live'],
  ['a good token file', 'TokenFile', { expired: false, available: true }, 'ready'],
  ['a token file that is late', 'TokenFile', { stale: true, expired: false, available: true }, 'ready'],
  ['an expired token file', 'TokenFile', { expired: true, available: true }, 'live'],
  ['a token file without a token', 'TokenFile', { expired: false, available: false }, 'live'],
  ['a good certificate', 'TlsFiles', { expired: false, available: true }, 'ready'],
  ['no certificate yet', 'TlsFiles', { expired: false, available: false }, 'live'],
  ['an expired certificate', 'TlsFiles', { expired: true, available: true }, 'live'],
  ['another component that runs', 'VolumePublisher', {}, 'ready'],
  ['a component that needs no start', 'VolumePublisher', { state: 'idle' }, 'ready'],
  ['a component that was not started', 'TokenFile', { state: 'idle', expired: false }, 'live'],
  ['a component that is closed', WATCHER, { ...WATCHING, state: 'closed' }, 'live'],
])('%s', async (_what, kind, details, verdict) => {
  const health = healthOf(await running(kind, details));
  expect(health).toMatchObject({ live: verdict !== 'dead', ready: verdict === 'ready' });
  expect(health.checks[0]?.reason === null).toBe(verdict === 'ready');
});

test('all components have to be live, and live and ready', async () => {
  const good = await running('ResilientWatcher', WATCHING);
  const unready = await running('TokenFile', { expired: false, available: false });
  const dead = await running('ResilientWatcher', { ...WATCHING, sinceLastCheckMs: 60_000 });
  expect(healthOf(good)).toMatchObject({ live: true, ready: true });
  expect(healthOf(good, unready)).toMatchObject({ live: true, ready: false });
  expect(healthOf(good, dead)).toMatchObject({ live: false, ready: false });
  expect(healthOf(dead).checks).toEqual([
    {
      component: 'ResilientWatcher',
      name: 'it',
      live: false,
      ready: false,
      reason: 'the last check ended 60000 ms ago',
    },
  ]);
});

test.each(['node:http', 'Fastify'])('the handler answers probes in %s', async (framework) => {
  const component = await running('TokenFile', { expired: false, available: true });
  const url = await serve(framework, component);
  const statusOf = async (path: string): Promise<number> => (await fetch(`${url}${path}`)).status;
  expect(await statusOf('/readyz')).toBe(200);
  expect(await statusOf('/livez?verbose')).toBe(200);

  component.details = { state: 'running', expired: true, available: true };
  expect(await statusOf('/readyz')).toBe(503);
  expect(await statusOf('/livez')).toBe(200);
  const response = await fetch(`${url}/readyz`);
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  expect(await response.json()).toEqual(healthOf(component));
});

test('the handler refuses objects that are not components', () => {
  expect(() => healthHandler({} as never)).toThrow(/every argument must be a component/);
});

async function serve(framework: string, component: SampleComponent): Promise<string> {
  if (framework === 'Fastify') {
    const app = fastify();
    app.get('/readyz', healthHandler(component));
    app.get('/livez', healthHandler(component));
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: '127.0.0.1' });
  }
  const server = createServer(healthHandler(component));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
