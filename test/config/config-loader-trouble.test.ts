/** What a loader tells of a source that is in trouble: what is wrong, until when, and nothing of what is over. */
import { basename } from 'node:path';

import { type ConfigLoader, type ConfigMap, type ConfigProvider } from 'resilient-watcher/config';
import { expect, test } from 'vitest';

import { ConfigScene } from '../support/config-scene.js';

/** A configuration from one file. */
async function loadedScene() {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader<ConfigMap>({ sources: [{ provider: scene.file('a.json') }] });
  const told = toldBy(loader);
  await scene.load(loader);
  return { scene, loader, told };
}

/** The names of the events that tell how a source is, in order. */
function toldBy(loader: ConfigLoader): string[] {
  const told: string[] = [];
  for (const event of ['unreadable', 'readable', 'accepted'] as const)
    loader.on(event, ({ source }) => told.push(`${event} ${basename(source)}`));
  loader.on('rejected', ({ problems }) => told.push(`rejected ${problems.map(({ code }) => code).join()}`));
  return told;
}

test('a file that comes back with a mistake in it is readable, and rejected until it is mended', async () => {
  const { scene, told } = await loadedScene();
  scene.remove('a.json');
  await scene.pass();
  scene.write('a.json', '{');
  await scene.pass();
  expect(told).toEqual(['unreadable a.json', 'readable a.json', 'rejected ERR_CONFIG_PARSE']);
  scene.write('a.json', { n: 1 });
  await scene.pass();
  expect(told.slice(3)).toEqual(['accepted a.json']);
});

test('a file that was only missing is readable again, and not accepted: its contents were never rejected', async () => {
  const { scene, loader, told } = await loadedScene();
  scene.remove('a.json');
  await scene.pass();
  scene.write('a.json', { n: 2 });
  await scene.pass();
  expect(told).toEqual(['unreadable a.json', 'readable a.json']);
  expect(loader.current).toEqual({ n: 2 });
});

test('a source that is no longer watched is not degraded', async () => {
  const { scene, loader } = await loadedScene();
  scene.backend.refuse(...Array.from({ length: 20 }, () => new Error('no more watches')));
  scene.backend.fail();
  await scene.pass(5_000);
  expect(loader.status().sources).toMatchObject([{ degraded: true }]);
  await loader.close();
  expect(loader.status().sources).toMatchObject([{ degraded: false }]);
});

test('a rejection lists what is wrong with the source that is refused once, although others were tried with it', async () => {
  const scene = new ConfigScene();
  for (const name of ['a', 'b', 'c']) scene.write(name, { [name]: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: ['a', 'b', 'c'].map((name) => ({ provider: scene.file(name) })),
    validate: (values) => {
      if ((values as ConfigMap)['a'] === 2) throw new Error('not 2');
      return values as ConfigMap;
    },
  });
  await scene.load(loader);
  for (const name of ['a', 'b', 'c']) scene.write(name, { [name]: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ a: 1, b: 2, c: 2 });
  expect(scene.rejections.map(({ problems }) => problems.map(({ code }) => code))).toEqual([
    ['ERR_CONFIG_SCHEMA'],
  ]);
});

test('several calls of check() while an update is under way validate one after another', async () => {
  const scene = new ConfigScene();
  let [running, most, reads] = [0, 0, 0];
  // Each time it is read, there is something to validate.
  const provider: ConfigProvider = { name: 'remote', read: () => Promise.resolve({ n: (reads += 1) }) };
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider }],
    validate: async (values) => {
      running += 1;
      most = Math.max(most, running);
      await scene.settled();
      running -= 1;
      return values as ConfigMap;
    },
  });
  await scene.load(loader);
  await Promise.all([loader.check(), loader.check(), loader.check()]);
  expect(most).toBe(1);
});

test('the status says when the newest contents were last in use, and when some were refused', async () => {
  const { scene, loader } = await loadedScene();
  const { reloadedAt: loadedAt } = loader.status();
  expect(loader.status()).toMatchObject({ loadedAt, lastRejectedAt: null });
  scene.write('a.json', '{');
  await scene.pass();
  const { reloadedAt, lastRejectedAt } = loader.status();
  expect(reloadedAt).toBe(loadedAt);
  expect(lastRejectedAt).toBeGreaterThan(Number(loadedAt));
  scene.write('a.json', { n: 2 });
  await scene.pass();
  expect(loader.status().reloadedAt).toBeGreaterThan(Number(lastRejectedAt));
  expect(loader.status()).toMatchObject({ lastRejectedAt });
});

test('describe() names the source of the value in use, also while newer contents are refused', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: [{ values: { n: 0 } }, { provider: scene.file('a.json') }],
    validate: (values) => {
      if ((values as ConfigMap)['n'] === 0) throw new Error('not 0');
      return values as ConfigMap;
    },
  });
  await scene.load(loader);
  // Without the key, it is that of the defaults, which is refused.
  scene.write('a.json', {});
  await scene.pass();
  expect(loader.current).toEqual({ n: 1 });
  expect(loader.describe()).toMatchObject([{ path: ['n'], source: scene.path('a.json') }]);
});
