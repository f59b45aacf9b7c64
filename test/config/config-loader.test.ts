/** What a loader loads, and what it says about itself. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';

import {
  ConfigLoader,
  dotenvParser,
  jsonParser,
  type ConfigError,
  type ConfigMap,
} from 'resilient-watcher/config';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { ConfigScene } from '../support/config-scene.js';

const SECRET = 'hunter2';

test('later layers win, maps are merged, everything else is replaced', async () => {
  const scene = new ConfigScene();
  scene.write('app.json', { log: { level: 'info' }, list: [3], was: { map: 1 }, gone: null });
  const loader = scene.loader({
    sources: [
      {
        values: {
          log: { level: 'debug', pretty: true },
          list: [1, 2],
          was: { map: 0, b: 1 },
          gone: { a: 1 },
        },
      },
      { provider: scene.file('app.json') },
      { env: { prefix: 'APP_', env: { APP_LOG__LEVEL: 'warn', APP_WAS: 'text', OTHER: 'x' } } },
    ],
  });
  const config = await scene.load(loader);
  expect(config).toEqual({ log: { level: 'warn', pretty: true }, list: [3], was: 'text', gone: null });
  expect(loader.current).toBe(config);
  expect(() => ((config as { log: { level: string } }).log.level = 'x')).toThrow(TypeError);
});

test('load() of a loader that runs resolves to what is current by then', async () => {
  const scene = new ConfigScene();
  const env = { APP_LEVEL: 'info' };
  const loader = scene.loader({ sources: [{ env: { prefix: 'APP_', env } }] });
  await scene.load(loader);
  env.APP_LEVEL = 'debug';
  await loader.check();
  expect(await loader.load()).toEqual({ level: 'debug' });
});

test('load() fails with every problem of every source, may be called again, and leaves nothing behind', async () => {
  const scene = new ConfigScene();
  scene.write('bad.json', `{"password": "${SECRET}" "x"}`);
  const loader = scene.loader({
    sources: [
      { provider: scene.file('bad.json') },
      { provider: scene.file('missing.json') },
      { provider: scene.file('optional.json', { optional: true }) },
      { env: { prefix: 'A_', env: { A_X: SECRET, A_X__Y: SECRET } } },
      { values: { constructor: SECRET } },
    ],
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.code).toBe('ERR_CONFIG_INVALID');
  expect(error.problems.map(({ code, source, line, column }) => [code, source, line, column])).toEqual([
    ['ERR_CONFIG_PARSE', scene.path('bad.json'), 1, 24],
    ['ERR_CONFIG_MISSING', scene.path('missing.json'), undefined, undefined],
    ['ERR_CONFIG_PARSE', 'environment A_*', undefined, undefined],
    ['ERR_CONFIG_PARSE', 'values', undefined, undefined],
  ]);
  expect(error.stack).not.toContain(SECRET);
  expect([scene.backend.subscriptions, scene.clock.pending, loader.state]).toEqual([0, 0, 'idle']);
  expect(loader.current).toBeUndefined();
  expect(loader.status().lastError).toMatchObject({ code: 'ERR_CONFIG_INVALID' });
  await expect(scene.load(loader)).rejects.toThrow('bad.json:1:24');
});

test('check() after an abort rejects with the reason of the signal', async () => {
  const stopping = new AbortController();
  const scene = new ConfigScene();
  const loader = scene.loader({ sources: [{ values: { a: 1 } }], signal: stopping.signal });
  await scene.load(loader);
  stopping.abort(new Error('enough'));
  await expect(loader.check()).rejects.toThrow('enough');
});

test('the variables of a .env file set keys as those of the environment do', async () => {
  const scene = new ConfigScene();
  const text = 'APP_LOG__LEVEL=debug\nAPP_MAXCONN=7\nOTHER=x\n';
  const env = Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split('=')),
  ) as Record<string, string>;
  scene.write('.env', text);
  const provider = scene.file('.env', { parser: dotenvParser });
  const values = { log: { level: 'info' }, maxConn: 1 };
  const transform = (name: string, value: string) => ({ key: name.replace('__', '.'), value: [value] });
  for (const variables of [{ prefix: 'APP_' }, { prefix: 'APP_', delimiter: '.', transform }]) {
    const fromFile = scene.loader({ sources: [{ values }, { provider, env: variables }] });
    const fromProcess = scene.loader({ sources: [{ values }, { env: { ...variables, env } }] });
    const loaded = await scene.load(fromFile);
    expect(loaded).toEqual(await scene.load(fromProcess));
    expect(loaded).not.toEqual(values);
    await fromFile.close();
  }
  const refused = scene.loader({ sources: [{ provider: scene.file('a.json'), env: { prefix: '' } }] });
  scene.write('a.json', { A: 1 });
  await expect(scene.load(refused)).rejects.toMatchObject({
    problems: [{ code: 'ERR_CONFIG_PARSE', path: ['A'] }],
  });
});

test('a provider of your own may use a parser of the library: line and column of a fault are reported', async () => {
  const fetched = Promise.resolve('{\n  "level": secret\n}');
  const provider = { name: 'remote', read: async () => jsonParser.parse(await fetched) };
  const loader = new ConfigLoader({ sources: [{ provider }] });
  await expect(loader.load()).rejects.toMatchObject({
    problems: [{ code: 'ERR_CONFIG_PARSE', source: 'remote', line: 2, column: 12 }],
  });
});

test('variables set keys of lower layers regardless of case, unless that is ambiguous', async () => {
  const scene = new ConfigScene();
  const env = { APP_MAXCONN: '5', APP_DB__USERNAME: 'me', APP_TWICE: 'x', APP_NEW: 'y' };
  const seen: unknown[] = [];
  const loader = scene.loader<ConfigMap>({
    sources: [
      { values: { maxConn: 1, db: { userName: 'a' }, twice: 1, Twice: 2, tWice: 3 } },
      { env: { prefix: 'APP_', env } },
    ],
    validate: (values) => {
      seen.push(values);
      throw Object.assign(new Error(), { issues: [{ message: 'm', path: ['maxConn'] }] });
    },
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(seen).toEqual([{ maxConn: '5', db: { userName: 'me' }, twice: 'x', Twice: 2, tWice: 3, new: 'y' }]);
  expect(error.problems).toMatchObject([{ source: 'environment APP_*' }]);
  const exact = scene.loader<ConfigMap>({
    sources: [
      { values: { maxConn: 1 } },
      { env: { prefix: 'APP_', env, transform: (key, value) => ({ key: key.toLowerCase(), value }) } },
    ],
  });
  expect(await scene.load(exact)).toMatchObject({ maxConn: 1, maxconn: '5' });
});

test('a source is mounted under a key', async () => {
  const scene = new ConfigScene();
  scene.write('db', { host: 'a' });
  const loader = scene.loader<ConfigMap>({
    sources: [
      { values: { db: { host: 'default', port: 1 } } },
      { provider: scene.file('db'), at: 'db' },
      { env: { prefix: 'X_', env: { X_Y: 'z' } }, at: 'a.b' },
      { values: { v: 1 }, at: ['with.dot'] },
    ],
  });
  expect(await scene.load(loader)).toEqual({
    db: { host: 'a', port: 1 },
    a: { b: { y: 'z' } },
    'with.dot': { v: 1 },
  });
  for (const at of ['', 'a..b', 5, [''], '__proto__.x']) {
    expect(() => new ConfigLoader({ sources: [{ values: {}, at: at as string }] })).toThrow(TypeError);
  }
});

test('select() with `immediate` calls its listener with the current selection', async () => {
  const scene = new ConfigScene();
  scene.write('a', { n: 1, m: 1 });
  const loader = scene.loader<ConfigMap>({ sources: [{ provider: scene.file('a') }] });
  await scene.load(loader);
  const calls: unknown[] = [];
  loader.select(
    ({ n }) => n,
    (n, previous) => calls.push([n, previous]),
    { immediate: true },
  );
  expect(calls).toEqual([[1, undefined]]);
  scene.write('a', { n: 2, m: 1 });
  await scene.pass();
  scene.write('a', { n: 2, m: 2 });
  await scene.pass();
  expect(calls).toEqual([
    [1, undefined],
    [2, 1],
  ]);
});

test('the first configuration is a change, which select() with `immediate` passes on', async () => {
  const loader = new ConfigLoader({ sources: [{ values: { n: 1, log: { level: 'info' } } }] });
  const changes: unknown[] = [];
  const selected: unknown[] = [];
  loader.on('change', (change) => changes.push([change, loader.current === change.current]));
  loader.select(
    ({ n }) => n,
    (...args) => selected.push(args),
    { immediate: true },
  );
  loader.select(
    ({ n }) => n,
    () => expect.unreachable('it is not a change of the selection'),
  );
  const current = await loader.load();
  expect(changes).toEqual([[{ previous: undefined, current, paths: [['n'], ['log']] }, true]]);
  expect(selected).toEqual([[1, undefined]]);
  expect(loader.status().changes).toBe(0);
  await loader.load();
  expect(changes).toHaveLength(1);
  await loader.close();
});

test('a listener that fails in its immediate call is not added, or its rejection is emitted', async () => {
  const scene = new ConfigScene();
  const loader = scene.loader<ConfigMap>({ sources: [{ values: { n: 1 } }] });
  await scene.load(loader);
  const before = loader.listenerCount('change');
  const fail = (): never => {
    throw new Error('listener');
  };
  expect(() => loader.select(({ n }) => n, fail, { immediate: true })).toThrow('listener');
  expect(loader.listenerCount('change')).toBe(before);

  loader.select(
    ({ n }) => n,
    () => Promise.reject(new Error('listener')),
    { immediate: true },
  );
  await scene.settled();
  expect(scene.errors).toMatchObject([{ code: 'ERR_LISTENER', event: 'change' }]);
});

test('a loader without validate has a ConfigMap, and any other type needs a validator', () => {
  interface Settings {
    readonly port: number;
  }
  const sources = [{ values: { port: 1 } }];
  const map: ConfigLoader = new ConfigLoader({ sources });
  const unchecked = new ConfigLoader<unknown>({ sources });
  // @ts-expect-error -- nothing shows that the values are Settings
  const wrong = new ConfigLoader<Settings>({ sources });
  // @ts-expect-error -- a Date is not plain data
  const alsoWrong = new ConfigLoader<{ readonly since: Date }>({ sources, validate: undefined });
  const inferred = new ConfigLoader<Settings>({
    sources,
    validate: z.object({ port: z.number() }),
  });
  const explicit = new ConfigLoader<Settings>({ sources, validate: (values) => values as Settings });
  const current: Settings | undefined = explicit.current;
  expect(current).toBeUndefined();
  expect([map, unchecked, wrong, alsoWrong, inferred].map(({ state }) => state)).toEqual(
    Array(5).fill('idle'),
  );
});

test('its status and its JSON are plain data with the name', async () => {
  const scene = new ConfigScene();
  scene.write('a', { password: SECRET });
  const loader = scene.loader<ConfigMap>({ name: 'app', sources: [{ provider: scene.file('a') }] });
  await scene.load(loader);
  expect(JSON.parse(JSON.stringify(loader))).toEqual(loader.status());
  expect(loader.status()).toMatchObject({ name: 'app', state: 'running', lastError: null, changes: 0 });
  expect(`${JSON.stringify(loader)}${inspect(loader)}`).not.toContain(SECRET);
  scene.write('a', 'not JSON');
  await scene.pass();
  expect(loader.status().sources).toMatchObject([{ state: 'rejected', problems: [{ line: 1 }] }]);
  expect(JSON.parse(JSON.stringify(loader))).toStrictEqual(loader.status());
  expect(scene.rejections).toMatchObject([{ error: { code: 'ERR_CONFIG_INVALID' } }]);
});

test('each load and each update is a traced operation', async () => {
  const scene = new ConfigScene();
  scene.write('a', { n: 1 });
  const loader = scene.loader<ConfigMap>({ name: 'traced', sources: [{ provider: scene.file('a') }] });
  const results: unknown[] = [];
  const onEnd = (message: unknown): void => {
    const { component, result } = message as { component?: { name: string }; result?: string };
    if (component?.name === 'traced') results.push(result);
  };
  subscribe('tracing:resilient-watcher.config.reload:asyncEnd', onEnd);
  onTestFinished(() => void unsubscribe('tracing:resilient-watcher.config.reload:asyncEnd', onEnd));
  await scene.load(loader);
  await loader.check();
  for (const text of ['{', '{"n":2}']) {
    scene.write('a', text);
    await scene.pass();
  }
  scene.remove('a');
  await scene.pass();
  expect(results).toEqual(['accepted', 'unchanged', 'rejected', 'accepted', 'rejected']);
});

test('the digest of the status identifies the values in use, whatever their order and source', async () => {
  const scene = new ConfigScene();
  scene.write('app.json', { a: 1, b: { c: [1, 2], d: 'x' } });
  const loader = scene.loader({ sources: [{ provider: scene.file('app.json') }] });
  const same = scene.loader({ sources: [{ values: { b: { d: 'x', c: [1, 2] } } }, { values: { a: 1 } }] });
  expect(loader.status().digest).toBeNull();
  await Promise.all([scene.load(loader), scene.load(same)]);
  const { digest } = same.status();
  expect(digest).toMatch(/^sha256:[\da-f]{64}$/);
  expect(loader.status().digest).toBe(digest);
  scene.write('app.json', { a: 1, b: { c: [2, 1], d: 'x' } });
  await scene.pass();
  expect(loader.status().digest).not.toBe(digest);
  scene.write('app.json', '{');
  await scene.pass();
  expect(loader.status().digest, 'a file that is refused changes nothing').toMatch(/^sha256:/);
  scene.write('app.json', { b: { d: 'x', c: [1, 2] }, a: 1 });
  await scene.pass();
  expect(loader.status().digest).toBe(digest);
});
