/** A new configuration that is valid, and does not work. */
import { basename } from 'node:path';

import { expect, test } from 'vitest';

import type { ConfigMap } from 'resilient-watcher/config';

import { ConfigScene } from '../support/config-scene.js';

test('a configuration that is not healthy in time is replaced by the one before, and not tried again', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const asked: unknown[] = [];
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a.json') }],
    trial: {
      healthy(config) {
        asked.push(config['n']);
        if (config['n'] === 3) throw new Error('the pool is empty');
        return config['n'] !== 2;
      },
      ms: 10_000,
    },
  });
  const reverted: string[] = [];
  loader.on('reverted', ({ error, sources }) =>
    reverted.push(`${error.code} ${sources.map((path) => basename(path)).join()} ${String(error.cause)}`),
  );
  await scene.load(loader);
  expect(asked).toEqual([]);

  scene.write('a.json', { n: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ n: 2 });
  await scene.pass(10_000);
  expect(loader.current).toEqual({ n: 1 });
  expect(reverted).toEqual(['ERR_CONFIG_UNHEALTHY a.json undefined']);
  expect(scene.changes).toEqual([['n'], ['n']]);
  expect(loader.status().sources).toMatchObject([
    { state: 'rejected', problems: [{ code: 'ERR_CONFIG_UNHEALTHY' }] },
  ]);

  const times = asked.length;
  await scene.during(loader.check());
  await scene.pass();
  expect([asked.length, loader.current]).toEqual([times, { n: 1 }]);

  scene.write('a.json', { n: 3 });
  await scene.pass(12_000);
  expect(reverted[1]).toBe('ERR_CONFIG_UNHEALTHY a.json Error: the pool is empty');

  scene.write('a.json', { n: 4 });
  await scene.pass();
  await scene.pass();
  expect(loader.current).toEqual({ n: 4 });
  expect(loader.status().sources).toMatchObject([{ state: 'current', problems: [] }]);
  expect(reverted).toHaveLength(2);
});

test('sources that were reverted together are tried again together', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { a: 1 });
  scene.write('b.json', { b: 1 });
  scene.write('c.json', { c: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: ['a.json', 'b.json', 'c.json'].map((name) => ({ provider: scene.file(name) })),
    trial: { healthy: (config) => config['a'] !== 2, ms: 100 },
  });
  await scene.load(loader);
  scene.write('a.json', { a: 2 });
  scene.write('b.json', { b: 2 });
  await scene.pass();
  await scene.pass();
  expect(loader.current).toEqual({ a: 1, b: 1, c: 1 });

  scene.write('c.json', { c: 2 });
  await scene.pass();
  await scene.pass();
  expect(loader.current).toEqual({ a: 1, b: 1, c: 2 });

  scene.write('a.json', { a: 3 });
  await scene.pass();
  await scene.pass();
  expect(loader.current).toEqual({ a: 3, b: 2, c: 2 });
});

test('close() ends a trial that is never answered', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a.json') }],
    trial: { healthy: () => new Promise<boolean>(() => undefined), ms: 60_000 },
  });
  await scene.load(loader);
  scene.write('a.json', { n: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ n: 2 });
  await loader.close();
  expect(scene.errors).toEqual([]);
});

test('an answer that is not a boolean is none: a response is not healthy because there is one', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a.json') }],
    trial: { healthy: () => Promise.resolve({ status: 503 } as unknown as boolean), ms: 1_000 },
  });
  const causes: unknown[] = [];
  loader.on('reverted', ({ error }) => causes.push(error.cause));
  await scene.load(loader);
  scene.write('a.json', { n: 2 });
  await scene.pass(2_000);
  expect(loader.current).toEqual({ n: 1 });
  expect(causes).toMatchObject([
    { name: 'TypeError', message: 'healthy must return a boolean, got an object' },
  ]);
});
