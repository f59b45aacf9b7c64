import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';

import { type } from 'arktype';
import {
  ConfigLoader,
  type ConfigError,
  type ConfigMap,
  type ConfigProvider,
  type ConfigValidator,
  type ProviderCallback,
} from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import * as v from 'valibot';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

import { nextTurn } from '../../src/core/event-loop.js';
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
    ['ERR_CONFIG_REFUSED', 'environment A_*', undefined, undefined],
    ['ERR_CONFIG_REFUSED', 'values', undefined, undefined],
  ]);
  expect(error.stack).not.toContain(SECRET);
  expect([scene.backend.subscriptions, scene.clock.pending, loader.state]).toEqual([0, 0, 'idle']);
  expect(loader.current).toBeUndefined();
  expect(loader.status().lastError).toMatchObject({ code: 'ERR_CONFIG_INVALID' });
  await expect(scene.load(loader)).rejects.toThrow('bad.json:1:24');
});

test.each<[string, ConfigValidator<unknown>]>([
  ['zod', z.object({ db: z.object({ port: z.number(), host: z.string() }) })],
  ['valibot', v.object({ db: v.object({ port: v.number(), host: v.string() }) })],
  ['arktype', type({ db: { port: 'number', host: 'string' } })],
  [
    'a function that throws what it refuses',
    (values) => z.object({ db: z.object({ port: z.number(), host: z.string() }) }).parse(values),
  ],
])('%s validates, its problems bear path and source but not the value', async (_, validate) => {
  const scene = new ConfigScene();
  scene.write('db.json', { db: { port: 1 } });
  const loader = scene.loader({
    sources: [{ values: { db: { host: 'a' } } }, { provider: scene.file('db.json') }],
    validate,
  });
  expect(await scene.load(loader)).toEqual({ db: { port: 1, host: 'a' } });

  scene.write('db.json', { db: { port: `pass-${SECRET}` } });
  await scene.pass();
  expect(scene.rejections).toMatchObject([
    {
      sources: [
        { name: scene.path('db.json'), digest: expect.stringMatching(/^sha256:[\da-f]{64}$/) as string },
      ],
      problems: [{ code: 'ERR_CONFIG_SCHEMA', source: scene.path('db.json'), path: ['db', 'port'] }],
    },
  ]);
  expect(JSON.stringify([scene.rejections, loader.status()])).not.toContain(SECRET);
  expect(loader.current).toEqual({ db: { port: 1, host: 'a' } });
});

test('a message that quotes values, whole or in part, is shown without them', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 0, url: `postgres://me:${SECRET}@db`, pin: 42, key: 'line\nsecond' });
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a.json') }],
    validate: (values) => {
      throw new Error(
        `${JSON.stringify(values)} ${SECRET} ${SECRET.toUpperCase()} pin42 42 is not a valid thing`,
      );
    },
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.message).not.toMatch(/hunter2|42|second|postgres/i);
  expect(error.message).toContain('is not a valid thing');
});

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
    sources: [{ provider: scene.file('a', { parser: undefined }), parser }],
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

test('the values of an optional file are added and removed with it', async () => {
  const scene = new ConfigScene();
  const loader = scene.loader({
    sources: [{ values: { n: 1 } }, { provider: scene.file('a', { optional: true }) }],
  });
  expect(await scene.load(loader)).toEqual({ n: 1 });
  scene.write('a', { n: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ n: 2 });
  scene.remove('a');
  await scene.pass();
  expect(loader.current).toEqual({ n: 1 });
  expect(scene.rejections).toEqual([]);
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

test.each(['close()', 'the signal'])('%s ends a load whose validate never does', async (how) => {
  const scene = new ConfigScene();
  scene.write('a', {});
  const controller = new AbortController();
  let validates = (): void => undefined;
  const validating = new Promise<void>((resolve) => (validates = resolve));
  const loader = scene.loader({
    sources: [{ provider: scene.file('a') }],
    validate: () => {
      validates();
      return new Promise<never>(() => undefined);
    },
    signal: controller.signal,
  });
  const refused = expect(scene.load(loader)).rejects.toThrow(how === 'close()' ? 'closed' : 'enough');
  await validating;
  if (how === 'the signal') controller.abort(new Error('enough'));
  await loader.close();
  await refused;
  expect([scene.backend.subscriptions, scene.clock.pending]).toEqual([0, 0]);
});

test('concurrent calls of check() lead to updates one after another', async () => {
  const scene = new ConfigScene();
  let reading = 0;
  let most = 0;
  const provider: ConfigProvider = {
    name: 'remote',
    read: async () => {
      reading += 1;
      most = Math.max(most, reading);
      await nextTurn();
      reading -= 1;
      return {};
    },
  };
  const loader = scene.loader({ sources: [{ provider }] });
  await scene.load(loader);
  await Promise.all([loader.check(), loader.check(), loader.check()]);
  expect(most).toBe(1);
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

test.each<[string, unknown]>([
  ['no options', undefined],
  ['no sources', { sources: [] }],
  ['a source of no kind', { sources: [{ file: '/etc/x' }] }],
  ['a provider that cannot be read', { sources: [{ provider: {} }] }],
  ['a parser that is none', { sources: [{ provider: { read: () => ({}) }, parser: 1 }] }],
  ['a schema that is none', { sources: [{ values: {} }], validate: {} }],
  ['an unknown option', { sources: [{ values: {} }], settle: 1 }],
])('%s is a TypeError', (_, options) => {
  expect(() => new ConfigLoader(options as never)).toThrow(TypeError);
});

const odd: [string, unknown, { path?: string[]; message: string }][] = [
  ['an issue that is null', { issues: [null] }, { path: [], message: 'refused without a message' }],
  ['a path that is a number', { issues: [{ message: 'm', path: 5 }] }, { path: [], message: 'm' }],
  [
    'a number in a path',
    { issues: [{ message: 'm', path: ['list', 0] }] },
    { path: ['list', '0'], message: 'm' },
  ],
  ['null in a path', { issues: [{ message: 'm', path: [null, {}] }] }, { path: ['?', '?'], message: 'm' }],
  [
    'a message that is none',
    { issues: [{ message: 7 }] },
    { path: [], message: 'refused without a message' },
  ],
  ['a text', 'not good', { path: [], message: 'not good' }],
  ['undefined', undefined, { path: [], message: 'refused without a message' }],
  ['a symbol', Symbol('s'), { path: [], message: 'refused without a message' }],
  ['an object without a prototype', Object.create(null), { path: [], message: 'refused without a message' }],
  [
    'a getter that throws',
    Object.defineProperty({}, 'issues', {
      get: () => {
        throw new Error('getter');
      },
    }),
    { path: [], message: 'refused without a message' },
  ],
];

test.each(odd)('a validator that throws %s has refused the update', async (_, thrown, problem) => {
  const scene = new ConfigScene();
  scene.write('a', { list: [] });
  let refuse = false;
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a') }],
    validate: (values) => {
      if (refuse) throw thrown;
      return values as ConfigMap;
    },
  });
  await scene.load(loader);
  refuse = true;
  scene.write('a', { list: [1] });
  await scene.pass();
  expect(scene.rejections.map(({ problems }) => problems)).toMatchObject([
    [{ code: 'ERR_CONFIG_SCHEMA', ...problem }],
  ]);
  expect(scene.errors).toEqual([]);
});

test('a schema that returns neither a value nor issues has refused the update', async () => {
  const scene = new ConfigScene();
  const schema = { '~standard': { version: 1, vendor: 'none', validate: () => undefined } };
  const loader = scene.loader<ConfigMap>({ sources: [{ values: {} }], validate: schema as never });
  await expect(scene.load(loader)).rejects.toThrow('neither a value nor issues');
});

test('a hundred of thousands of issues are reported', { timeout: 20_000 }, async () => {
  const scene = new ConfigScene();
  const list = Array.from({ length: 20_000 }, (_, n) => `value${n}`);
  const loader = scene.loader<unknown>({
    sources: [{ values: { list } }],
    validate: z.object({ list: z.array(z.number()) }),
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems).toHaveLength(101);
  expect(error.problems.at(-1)?.message).toBe('19900 more problems');
});

test('neither a cut message, nor a percent-encoded one, nor a path shows a value', async () => {
  const scene = new ConfigScene();
  const secret = 'correct/horse-battery staple';
  const loader = scene.loader<ConfigMap>({
    sources: [{ values: { secret, list: ['x'], nested: { here: 1 } } }],
    validate: () => {
      const message = `${'. '.repeat(146)}${secret} ${encodeURIComponent(secret)}`;
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- as some validators do
      throw {
        issues: [
          { message, path: ['nested', 'here'] },
          { message: encodeURIComponent(secret), path: ['list', 0] },
          { message: 'is missing', path: ['nested', secret] },
          { message: 'is missing', path: ['nested', 'hostname'] },
          { message: 'is missing', path: [`users:${secret}`, 'battery'] },
        ],
      };
    },
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(JSON.stringify([error.message, error.problems])).not.toMatch(/corr|hor|batt|stap/i);
  expect(error.problems.map(({ path }) => path)).toEqual([
    ['nested', 'here'],
    ['list', '0'],
    ['nested', '…'],
    ['nested', 'hostname'],
    ['…', '…'],
  ]);
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

test('several sources are waited for until all have changed, or for settleMs', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  const publish = (a: number, b: number): void => {
    volume.publish({ a: `{"a":${a}}`, b: `{"b":${b}}` });
    scene.backend.hint();
  };
  publish(1, 1);
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('volume/a') }, { provider: scene.file('volume/b') }],
  });
  await scene.load(loader);
  publish(2, 2);
  await scene.settled();
  expect(scene.changes).toEqual([['a', 'b']]);

  publish(3, 2);
  await scene.settled();
  await scene.clock.advance(49);
  expect(scene.changes).toHaveLength(1);
  await scene.clock.advance(1);
  await scene.settled();
  expect(scene.changes).toEqual([['a', 'b'], ['a']]);
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

test('many sources cause no leak warning', async () => {
  const scene = new ConfigScene();
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const names = Array.from({ length: 20 }, (_, n) => `file${n}`);
  for (const name of names) scene.write(name, {});
  const loader = scene.loader<ConfigMap>({
    sources: names.map((name) => ({ provider: scene.file(name) })),
  });
  await scene.load(loader);
  await loader.check();
  await nextTurn();
  expect(warnings).toEqual([]);
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
