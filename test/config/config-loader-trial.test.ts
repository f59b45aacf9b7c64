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

/** Three sources, of which each change is one update; what is healthy is said by a function. */
async function threeSources(healthy: (config: ConfigMap) => boolean): Promise<{
  readonly current: () => unknown;
  readonly change: (values: Readonly<Record<string, number>>) => Promise<void>;
}> {
  const scene = new ConfigScene();
  for (const name of ['a', 'b', 'c']) scene.write(`${name}.json`, { [name]: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: ['a', 'b', 'c'].map((name) => ({ provider: scene.file(`${name}.json`) })),
    trial: { healthy, ms: 100 },
  });
  await scene.load(loader);
  return {
    current: () => loader.current,
    async change(values) {
      for (const [name, value] of Object.entries(values)) scene.write(`${name}.json`, { [name]: value });
      for (let passes = 0; passes < 3; passes += 1) await scene.pass();
    },
  };
}

test('a source waits for the one that it was reverted with, whatever is reverted in the meantime', async () => {
  const { current, change } = await threeSources(({ a, c }) => a !== 2 && c !== 2);
  await change({ a: 2, b: 2 });
  await change({ c: 2 });
  expect(current()).toEqual({ a: 1, b: 1, c: 1 });
  await change({ a: 3 });
  expect(current()).toEqual({ a: 3, b: 2, c: 1 });
  await change({ c: 3 });
  expect(current()).toEqual({ a: 3, b: 2, c: 3 });
});

test('a source waits for the one that it was reverted with through an update of that one that is bad as well', async () => {
  const { current, change } = await threeSources(({ a, b }) => a !== 2 && !(b === 2 && a !== 4));
  await change({ a: 2, b: 2 });
  await change({ a: 3 });
  expect(current()).toEqual({ a: 3, b: 1, c: 1 });
  await change({ c: 2 });
  expect(current()).toEqual({ a: 3, b: 1, c: 2 });
  await change({ a: 4 });
  expect(current()).toEqual({ a: 4, b: 2, c: 2 });
});

test('a source that is healthy alone is not kept back by the one that it was reverted with', async () => {
  const { current, change } = await threeSources(({ a }) => a !== 2);
  await change({ a: 2, b: 2 });
  await change({ b: 3 });
  expect(current()).toEqual({ a: 1, b: 3, c: 1 });
  await change({ b: 4, c: 2 });
  expect(current()).toEqual({ a: 1, b: 4, c: 2 });
  await change({ a: 3 });
  expect(current()).toEqual({ a: 3, b: 4, c: 2 });
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

/** The causes with which a change of the configuration is reverted. */
async function causesOf(healthy: () => boolean | Promise<boolean>): Promise<unknown[]> {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a.json') }],
    trial: { healthy, ms: 1_000 },
  });
  const causes: unknown[] = [];
  loader.on('reverted', ({ error }) => causes.push(error.cause));
  await scene.load(loader);
  scene.write('a.json', { n: 2 });
  await scene.pass(2_000);
  expect(loader.current).toEqual({ n: 1 });
  return causes;
}

test('an answer that is not a boolean is none: a response is not healthy because there is one', async () => {
  const causes = await causesOf(() => Promise.resolve({ status: 503 } as unknown as boolean));
  expect(causes).toMatchObject([
    { name: 'TypeError', message: 'healthy must return a boolean, got an object' },
  ]);
});

test('the cause of a reversal is why the last answer was no, not what failed before it', async () => {
  let asked = 0;
  const causes = await causesOf(() => {
    asked += 1;
    if (asked === 1) throw new Error('not connected yet');
    return false;
  });
  expect(causes).toEqual([undefined]);
});
