/** When a loader updates, and what a bad update keeps. */
import { renameSync, symlinkSync } from 'node:fs';

import { type ConfigMap, type ConfigProvider, type ProviderCallback } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigScene } from '../support/config-scene.js';

const SECRET = 'hunter2';

test('a bad update is rejected once, the good values stay, and the next good update is accepted as a whole', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { log: { level: 'info' }, n: 1 });
  const loader = scene.loader({
    sources: [{ provider: scene.file('a.json') }],
    validate: z.object({ log: z.object({ level: z.string() }), n: z.number() }),
  });
  const first = await scene.load(loader);
  const levels: string[] = [];
  const unsubscribe = loader.select(
    ({ log }) => log,
    ({ level }, previous) => levels.push(`${previous.level} ${level}`),
  );
  for (const bad of [
    '{',
    '',
    '[]',
    { log: {}, n: 1 },
    '{"n":1,"n":2}',
    '{"__proto__":{}}',
    'x'.repeat(2 ** 20 + 1),
  ]) {
    scene.write('a.json', bad);
    await scene.pass();
    await scene.pass();
    expect(loader.current).toBe(first);
  }
  scene.remove('a.json');
  await scene.pass();
  expect(scene.rejections).toHaveLength(7);
  expect(scene.unreadable).toEqual(['a.json ERR_CONFIG_MISSING']);
  expect(loader.status()).toMatchObject({ rejections: 7, changes: 0, sources: [{ state: 'rejected' }] });

  scene.write('a.json', { log: { level: 'info' }, n: 2 });
  await scene.pass();
  expect(scene.readable).toEqual(['a.json']);
  expect(scene.changes).toEqual([['n']]);
  expect(levels).toEqual([]);
  scene.write('a.json', { log: { level: 'warn' }, n: 2 });
  await scene.pass();
  expect(levels).toEqual(['info warn']);
  unsubscribe();
  scene.write('a.json', { log: { level: 'error' }, n: 2 });
  await scene.pass();
  expect(levels).toEqual(['info warn']);
  expect(scene.changes).toEqual([['n'], ['log.level'], ['log.level']]);
  expect(loader.status()).toMatchObject({ changes: 3, sources: [{ state: 'current', problems: [] }] });
  expect(scene.errors).toEqual([]);
});

test('sources that change together lead to one update, and may be valid only together', async () => {
  const scene = new ConfigScene();
  const files = ['a', 'b', 'c'];
  for (const file of files) scene.write(file, { [file]: 1 });
  const seen: unknown[] = [];
  const loader = scene.loader({
    sources: files.map((file) => ({ provider: scene.file(file) })),
    validate: (values) => {
      seen.push(values);
      const { a, b, c } = values as Record<string, number>;
      if (a !== b) throw new Error('a and b must agree');
      if (c === 13) throw new Error('c must be lucky');
      return { a, b, c };
    },
  });
  await scene.load(loader);
  scene.write('a', { a: 2 });
  await scene.pass();
  scene.write('c', { c: 13 });
  await scene.pass();
  expect(scene.changes).toEqual([]);
  expect(scene.rejections.map(({ sources }) => sources.map(({ name }) => name))).toEqual([
    [scene.path('a')],
    [scene.path('c')],
  ]);

  // With c still wrong, a and b come true as soon as they agree.
  scene.write('a', { a: 3 });
  scene.write('b', { b: 3 });
  await scene.pass();
  expect(loader.current).toEqual({ a: 3, b: 3, c: 1 });
  expect(scene.changes).toEqual([['a', 'b']]);
  scene.write('c', { c: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ a: 3, b: 3, c: 2 });
});

test('values that are valid only with those of a later source are taken in the same update, although a third is wrong', async () => {
  const scene = new ConfigScene();
  const files = ['a', 'b', 'c'];
  for (const file of files) scene.write(file, { [file]: 1 });
  const loader = scene.loader({
    sources: files.map((file) => ({ provider: scene.file(file) })),
    validate: (values) => {
      const { a, b, c } = values as Record<string, number>;
      if (Number(a) > Number(b) || c === 13) throw new Error('a is at most b, and c is not 13');
      return { a, b, c };
    },
  });
  await scene.load(loader);
  for (const [file, value] of Object.entries({ c: 13, a: 2, b: 2 })) {
    scene.write(file, { [file]: value });
    await scene.pass();
  }
  expect(loader.current).toEqual({ a: 2, b: 2, c: 1 });
  expect(scene.changes).toEqual([['a', 'b']]);
});

test('a validator that never settles, or settles too late, does not block updates', async () => {
  const scene = new ConfigScene();
  scene.write('a', { n: 1 });
  const late: (() => void)[] = [];
  const loader = scene.loader({
    sources: [{ provider: scene.file('a') }],
    validateTimeoutMs: 300,
    validate: (values) => {
      const { n } = values as { readonly n: number };
      return n % 2 === 1 ? n : new Promise<number>((resolve) => late.push(() => resolve(-1)));
    },
  });
  expect(await scene.load(loader)).toBe(1);
  scene.write('a', { n: 2 });
  await scene.pass();
  expect(scene.rejections).toMatchObject([
    { problems: [{ code: 'ERR_CONFIG_TIMEOUT', source: 'validate' }] },
  ]);
  scene.write('a', { n: 3 });
  await scene.pass();
  expect(loader.current).toBe(3);
  for (const answer of late) answer();
  await scene.pass();
  expect(loader.current).toBe(3);
  expect(scene.clock.pending).toBe(0);
});

test('a parser that throws or never settles does not block updates', async () => {
  const scene = new ConfigScene();
  scene.write('a', 'good');
  const parser = {
    name: 'odd',
    parse: (text: string): unknown => {
      if (text === 'throw') throw new Error(SECRET);
      return text === 'hang' ? new Promise(() => undefined) : { text };
    },
  };
  const loader = scene.loader({
    sources: [{ provider: scene.file('a', { parser }) }],
    parseTimeoutMs: 300,
  });
  await loader.load();
  for (const text of ['hang', 'throw', 'hang', 'better']) {
    scene.write('a', text);
    await scene.pass();
  }
  expect(loader.current).toEqual({ text: 'better' });
  expect(scene.rejections.map(({ problems }) => problems[0]?.code)).toEqual([
    'ERR_CONFIG_TIMEOUT',
    'ERR_CONFIG_PARSE',
    'ERR_CONFIG_TIMEOUT',
  ]);
  expect(JSON.stringify(scene.rejections)).not.toContain(SECRET);
});

test('listeners and selectors that throw do not affect others, and close() within one ends everything', async () => {
  const scene = new ConfigScene();
  scene.write('a', { n: 1 });
  const loader = scene.loader<ConfigMap>({ sources: [{ provider: scene.file('a') }] });
  await scene.load(loader);
  loader.select(
    () => {
      throw new Error('selector');
    },
    () => undefined,
  );
  let closed: Promise<void> | undefined;
  loader.on('change', () => {
    closed = loader.close();
  });
  scene.write('a', { n: 2 });
  await scene.pass();
  await closed;
  expect(loader.current).toEqual({ n: 2 });
  expect(scene.errors).toMatchObject([{ code: 'ERR_LISTENER' }]);
  scene.write('a', { n: 3 });
  await scene.pass();
  expect(scene.changes).toEqual([['n']]);
  expect([scene.backend.subscriptions, scene.clock.pending, loader.state]).toEqual([0, 0, 'closed']);
  await expect(scene.load(loader)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await expect(loader.check()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
});

test('check() reads sources that cannot be watched, and validates refused values again', async () => {
  const scene = new ConfigScene();
  let value: unknown = { n: 1 };
  let refuse = false;
  const loader = scene.loader({
    sources: [{ provider: { name: 'remote', read: () => Promise.resolve(value) } }],
    validate: (values) => {
      if (refuse) throw new Error('not now');
      return values;
    },
  });
  await scene.load(loader);
  value = { n: 2 };
  refuse = true;
  await loader.check();
  expect(scene.rejections).toHaveLength(1);
  await loader.check();
  expect(scene.rejections).toHaveLength(1);
  refuse = false;
  await loader.check();
  expect(loader.current).toEqual({ n: 2 });
});

test('check() sees what no event has reported yet', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('mount'));
  volume.publish({ 'app.json': '{"n":1}' });
  const loader = scene.loader({ sources: [{ provider: scene.file('mount/app.json') }] });
  await scene.load(loader);
  volume.publish({ 'app.json': '{"n":2}' });
  await scene.during(loader.check());
  expect(loader.current).toEqual({ n: 2 });
  volume.publish({ 'app.json': '{"n":' });
  await scene.during(loader.check());
  expect(scene.rejections).toHaveLength(1);
  expect(loader.current).toEqual({ n: 2 });
});

test('with one watched source a change is not delayed', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  volume.publish({ a: '{"n":1}' });
  const loader = scene.loader<ConfigMap>({
    sources: [{ values: { d: 1 } }, { provider: scene.file('volume/a') }, { env: { prefix: 'X_' } }],
  });
  await scene.load(loader);
  volume.publish({ a: '{"n":2}' });
  scene.backend.hint();
  await scene.settled();
  expect(loader.current).toEqual({ d: 1, n: 2 });
});

test('a provider that calls back whenever it is read leads to one update per settleMs', async () => {
  const scene = new ConfigScene();
  let callback: ProviderCallback = () => undefined;
  let reads = 0;
  const provider: ConfigProvider = {
    name: 'eager',
    watch: (given) => {
      callback = given;
      return Promise.resolve();
    },
    read: () => {
      reads += 1;
      callback({}, undefined);
      return Promise.resolve({ reads });
    },
  };
  const loader = scene.loader<ConfigMap>({ sources: [{ provider }] });
  await scene.load(loader);
  await scene.clock.advance(0);
  const before = reads;
  for (let step = 0; step < 3; step += 1) await scene.clock.advance(50);
  expect(reads).toBe(before + 3);
  expect(loader.current).toEqual({ reads });
});

test('`degraded` and `recovered` of a source are emitted with its name', async () => {
  const scene = new ConfigScene();
  scene.write('a', {});
  const loader = scene.loader<ConfigMap>({ sources: [{ provider: scene.file('a') }] });
  const events: unknown[] = [];
  loader.on('degraded', ({ source, error, pollIntervalMs }) =>
    events.push(['degraded', source, error.name, pollIntervalMs]),
  );
  loader.on('recovered', ({ source, backend }) => events.push(['recovered', source, backend]));
  await scene.load(loader);
  scene.backend.refuse(...Array.from({ length: 20 }, () => new Error('no more watches')));
  scene.backend.fail();
  await scene.pass(5_000);
  expect(events).toEqual([['degraded', scene.path('a'), 'BackendError', 1_000]]);
  expect(loader.status()).toMatchObject({
    sources: [{ degraded: true }],
    lastError: { name: 'BackendError' },
  });
  scene.backend.accept();
  await scene.pass(10_000);
  expect(events.slice(1)).toEqual([['recovered', scene.path('a'), 'scripted']]);
  expect(loader.status()).toMatchObject({ state: 'running', sources: [{ degraded: false }] });
  expect(scene.errors).toEqual([]);
});

test('a file that is readable again with the same contents is reported as readable', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader({ sources: [{ provider: scene.file('a.json') }] });
  await scene.load(loader);
  renameSync(scene.path('a.json'), scene.path('aside'));
  symlinkSync('a.json', scene.path('a.json'));
  await scene.pass();
  expect(scene.unreadable).toEqual(['a.json ERR_CONFIG_UNREADABLE']);
  renameSync(scene.path('aside'), scene.path('a.json'));
  await scene.pass();
  expect(scene.readable).toEqual(['a.json']);
  expect(loader.status().sources).toMatchObject([{ state: 'current', problems: [] }]);
  expect(scene.changes).toEqual([]);
});

test('close() waits until a load that has failed has stopped watching', async () => {
  const scene = new ConfigScene();
  const ends: (() => void)[] = [];
  const provider: ConfigProvider = {
    name: 'remote',
    read: () => Promise.resolve('bad'),
    watch: () => Promise.resolve(),
    unwatch: () => new Promise((resolve) => ends.push(resolve)),
  };
  const loader = scene.loader({ sources: [{ provider }] });
  loader.load().catch(() => undefined);
  await expect.poll(() => scene.settled().then(() => ends.length)).toBe(1);
  let isClosed = false;
  const closed = loader.close().then(() => (isClosed = true));
  await scene.settled();
  expect(isClosed).toBe(false);
  ends.forEach((end) => end());
  await closed;
  expect(scene.clock.pending).toBe(0);
});
