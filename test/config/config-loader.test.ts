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
import { ConfigStage } from './config-stage.js';

const SECRET = 'hunter2';

test('later layers win, maps are merged, everything else is replaced', async () => {
  const stage = new ConfigStage();
  stage.write('app.json', { log: { level: 'info' }, list: [3], was: { map: 1 }, gone: null });
  const loader = stage.loader({
    sources: [
      {
        values: {
          log: { level: 'debug', pretty: true },
          list: [1, 2],
          was: { map: 0, b: 1 },
          gone: { a: 1 },
        },
      },
      { provider: stage.file('app.json') },
      { env: { prefix: 'APP_', env: { APP_LOG__LEVEL: 'warn', APP_WAS: 'text', OTHER: 'x' } } },
    ],
  });
  const config = await stage.load(loader);
  expect(config).toEqual({ log: { level: 'warn', pretty: true }, list: [3], was: 'text', gone: null });
  expect(loader.current).toBe(config);
  expect(() => ((config as { log: { level: string } }).log.level = 'x')).toThrow(TypeError);
});

test('load() fails with every problem of every source, may be called again, and leaves nothing behind', async () => {
  const stage = new ConfigStage();
  stage.write('bad.json', `{"password": "${SECRET}" "x"}`);
  const loader = stage.loader({
    sources: [
      { provider: stage.file('bad.json') },
      { provider: stage.file('missing.json') },
      { provider: stage.file('optional.json', { optional: true }) },
      { env: { prefix: 'A_', env: { A_X: SECRET, A_X__Y: SECRET } } },
      { values: { constructor: SECRET } },
    ],
  });
  const error = (await stage.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.code).toBe('ERR_CONFIG_INVALID');
  expect(error.problems.map(({ code, source, line, column }) => [code, source, line, column])).toEqual([
    ['ERR_CONFIG_PARSE', stage.path('bad.json'), 1, 24],
    ['ERR_CONFIG_MISSING', stage.path('missing.json'), undefined, undefined],
    ['ERR_CONFIG_REFUSED', 'environment A_*', undefined, undefined],
    ['ERR_CONFIG_REFUSED', 'values', undefined, undefined],
  ]);
  expect(error.stack).not.toContain(SECRET);
  expect([stage.backend.subscriptions, stage.clock.pending, loader.state]).toEqual([0, 0, 'idle']);
  expect(loader.current).toBeUndefined();
  expect(loader.status().lastError).toMatchObject({ code: 'ERR_CONFIG_INVALID' });
  await expect(stage.load(loader)).rejects.toThrow('bad.json:1:24');
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
  const stage = new ConfigStage();
  stage.write('db.json', { db: { port: 1 } });
  const loader = stage.loader({
    sources: [{ values: { db: { host: 'a' } } }, { provider: stage.file('db.json') }],
    validate,
  });
  expect(await stage.load(loader)).toEqual({ db: { port: 1, host: 'a' } });

  stage.write('db.json', { db: { port: `pass-${SECRET}` } });
  await stage.pass();
  expect(stage.rejections).toMatchObject([
    {
      sources: [
        { name: stage.path('db.json'), digest: expect.stringMatching(/^sha256:[\da-f]{64}$/) as string },
      ],
      problems: [{ code: 'ERR_CONFIG_SCHEMA', source: stage.path('db.json'), path: ['db', 'port'] }],
    },
  ]);
  expect(JSON.stringify([stage.rejections, loader.status()])).not.toContain(SECRET);
  expect(loader.current).toEqual({ db: { port: 1, host: 'a' } });
});

test('a message that quotes values, whole or in part, is shown without them', async () => {
  const stage = new ConfigStage();
  stage.write('a.json', { n: 0, url: `postgres://me:${SECRET}@db`, pin: 42, key: 'line\nsecond' });
  const loader = stage.loader<ConfigMap>({
    sources: [{ provider: stage.file('a.json') }],
    validate: (values) => {
      throw new Error(
        `${JSON.stringify(values)} ${SECRET} ${SECRET.toUpperCase()} pin42 42 is not a valid thing`,
      );
    },
  });
  const error = (await stage.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.message).not.toMatch(/hunter2|42|second|postgres/i);
  expect(error.message).toContain('is not a valid thing');
});

test('a bad update is rejected once, the good values stay, and the next good update is accepted as a whole', async () => {
  const stage = new ConfigStage();
  stage.write('a.json', { log: { level: 'info' }, n: 1 });
  const loader = stage.loader({
    sources: [{ provider: stage.file('a.json') }],
    validate: z.object({ log: z.object({ level: z.string() }), n: z.number() }),
  });
  const first = await stage.load(loader);
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
    stage.write('a.json', bad);
    await stage.pass();
    await stage.pass();
    expect(loader.current).toBe(first);
  }
  stage.remove('a.json');
  await stage.pass();
  expect(stage.rejections).toHaveLength(7);
  expect(stage.unreadable).toEqual(['a.json ERR_CONFIG_MISSING']);
  expect(loader.status()).toMatchObject({ rejections: 7, changes: 0, sources: [{ state: 'rejected' }] });

  stage.write('a.json', { log: { level: 'info' }, n: 2 });
  await stage.pass();
  expect(stage.readable).toEqual(['a.json']);
  expect(stage.changes).toEqual([['n']]);
  expect(levels).toEqual([]);
  stage.write('a.json', { log: { level: 'warn' }, n: 2 });
  await stage.pass();
  expect(levels).toEqual(['info warn']);
  unsubscribe();
  stage.write('a.json', { log: { level: 'error' }, n: 2 });
  await stage.pass();
  expect(levels).toEqual(['info warn']);
  expect(stage.changes).toEqual([['n'], ['log.level'], ['log.level']]);
  expect(loader.status()).toMatchObject({ changes: 3, sources: [{ state: 'current', problems: [] }] });
  expect(stage.errors).toEqual([]);
});

test('sources that change together lead to one update, and may be valid only together', async () => {
  const stage = new ConfigStage();
  const files = ['a', 'b', 'c'];
  for (const file of files) stage.write(file, { [file]: 1 });
  const seen: unknown[] = [];
  const loader = stage.loader({
    sources: files.map((file) => ({ provider: stage.file(file) })),
    validate: (values) => {
      seen.push(values);
      const { a, b, c } = values as Record<string, number>;
      if (a !== b) throw new Error('a and b must agree');
      if (c === 13) throw new Error('c must be lucky');
      return { a, b, c };
    },
  });
  await stage.load(loader);
  stage.write('a', { a: 2 });
  await stage.pass();
  stage.write('c', { c: 13 });
  await stage.pass();
  expect(stage.changes).toEqual([]);
  expect(stage.rejections.map(({ sources }) => sources.map(({ name }) => name))).toEqual([
    [stage.path('a')],
    [stage.path('c')],
  ]);

  // With c still wrong, a and b come true as soon as they agree.
  stage.write('a', { a: 3 });
  stage.write('b', { b: 3 });
  await stage.pass();
  expect(loader.current).toEqual({ a: 3, b: 3, c: 1 });
  expect(stage.changes).toEqual([['a', 'b']]);
  stage.write('c', { c: 2 });
  await stage.pass();
  expect(loader.current).toEqual({ a: 3, b: 3, c: 2 });
});

test('a validator that never settles, or settles too late, does not block updates', async () => {
  const stage = new ConfigStage();
  stage.write('a', { n: 1 });
  const late: (() => void)[] = [];
  const loader = stage.loader({
    sources: [{ provider: stage.file('a') }],
    validateTimeoutMs: 300,
    validate: (values) => {
      const { n } = values as { readonly n: number };
      return n % 2 === 1 ? n : new Promise<number>((resolve) => late.push(() => resolve(-1)));
    },
  });
  expect(await stage.load(loader)).toBe(1);
  stage.write('a', { n: 2 });
  await stage.pass();
  expect(stage.rejections).toMatchObject([
    { problems: [{ code: 'ERR_CONFIG_TIMEOUT', source: 'validate' }] },
  ]);
  stage.write('a', { n: 3 });
  await stage.pass();
  expect(loader.current).toBe(3);
  for (const answer of late) answer();
  await stage.pass();
  expect(loader.current).toBe(3);
  expect(stage.clock.pending).toBe(0);
});

test('a parser that throws or never settles does not block updates', async () => {
  const stage = new ConfigStage();
  stage.write('a', 'good');
  const parser = {
    name: 'odd',
    parse: (text: string): unknown => {
      if (text === 'throw') throw new Error(SECRET);
      return text === 'hang' ? new Promise(() => undefined) : { text };
    },
  };
  const loader = stage.loader({
    sources: [{ provider: stage.file('a', { parser: undefined }), parser }],
    parseTimeoutMs: 300,
  });
  await loader.load();
  for (const text of ['hang', 'throw', 'hang', 'better']) {
    stage.write('a', text);
    await stage.pass();
  }
  expect(loader.current).toEqual({ text: 'better' });
  expect(stage.rejections.map(({ problems }) => problems[0]?.code)).toEqual([
    'ERR_CONFIG_TIMEOUT',
    'ERR_CONFIG_PARSE',
    'ERR_CONFIG_TIMEOUT',
  ]);
  expect(JSON.stringify(stage.rejections)).not.toContain(SECRET);
});

test('the values of an optional file are added and removed with it', async () => {
  const stage = new ConfigStage();
  const loader = stage.loader({
    sources: [{ values: { n: 1 } }, { provider: stage.file('a', { optional: true }) }],
  });
  expect(await stage.load(loader)).toEqual({ n: 1 });
  stage.write('a', { n: 2 });
  await stage.pass();
  expect(loader.current).toEqual({ n: 2 });
  stage.remove('a');
  await stage.pass();
  expect(loader.current).toEqual({ n: 1 });
  expect(stage.rejections).toEqual([]);
});

test('listeners and selectors that throw do not affect others, and close() within one ends everything', async () => {
  const stage = new ConfigStage();
  stage.write('a', { n: 1 });
  const loader = stage.loader<ConfigMap>({ sources: [{ provider: stage.file('a') }] });
  await stage.load(loader);
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
  stage.write('a', { n: 2 });
  await stage.pass();
  await closed;
  expect(loader.current).toEqual({ n: 2 });
  expect(stage.errors).toMatchObject([{ code: 'ERR_LISTENER' }]);
  stage.write('a', { n: 3 });
  await stage.pass();
  expect(stage.changes).toEqual([['n']]);
  expect([stage.backend.subscriptions, stage.clock.pending, loader.state]).toEqual([0, 0, 'closed']);
  await expect(stage.load(loader)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await expect(loader.check()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
});

test.each(['close()', 'the signal'])('%s ends a load whose validate never does', async (how) => {
  const stage = new ConfigStage();
  stage.write('a', {});
  const controller = new AbortController();
  let validates = (): void => undefined;
  const validating = new Promise<void>((resolve) => (validates = resolve));
  const loader = stage.loader({
    sources: [{ provider: stage.file('a') }],
    validate: () => {
      validates();
      return new Promise<never>(() => undefined);
    },
    signal: controller.signal,
  });
  const refused = expect(stage.load(loader)).rejects.toThrow(how === 'close()' ? 'closed' : 'enough');
  await validating;
  if (how === 'the signal') controller.abort(new Error('enough'));
  await loader.close();
  await refused;
  expect([stage.backend.subscriptions, stage.clock.pending]).toEqual([0, 0]);
});

test('concurrent calls of check() lead to updates one after another', async () => {
  const stage = new ConfigStage();
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
  const loader = stage.loader({ sources: [{ provider }] });
  await stage.load(loader);
  await Promise.all([loader.check(), loader.check(), loader.check()]);
  expect(most).toBe(1);
});

test('check() reads sources that cannot be watched, and validates refused values again', async () => {
  const stage = new ConfigStage();
  let value: unknown = { n: 1 };
  let refuse = false;
  const loader = stage.loader({
    sources: [{ provider: { name: 'remote', read: () => Promise.resolve(value) } }],
    validate: (values) => {
      if (refuse) throw new Error('not now');
      return values;
    },
  });
  await stage.load(loader);
  value = { n: 2 };
  refuse = true;
  await loader.check();
  expect(stage.rejections).toHaveLength(1);
  await loader.check();
  expect(stage.rejections).toHaveLength(1);
  refuse = false;
  await loader.check();
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
  const stage = new ConfigStage();
  stage.write('a', { list: [] });
  let refuse = false;
  const loader = stage.loader<ConfigMap>({
    sources: [{ provider: stage.file('a') }],
    validate: (values) => {
      if (refuse) throw thrown;
      return values as ConfigMap;
    },
  });
  await stage.load(loader);
  refuse = true;
  stage.write('a', { list: [1] });
  await stage.pass();
  expect(stage.rejections.map(({ problems }) => problems)).toMatchObject([
    [{ code: 'ERR_CONFIG_SCHEMA', ...problem }],
  ]);
  expect(stage.errors).toEqual([]);
});

test('a schema that returns neither a value nor issues has refused the update', async () => {
  const stage = new ConfigStage();
  const schema = { '~standard': { version: 1, vendor: 'none', validate: () => undefined } };
  const loader = stage.loader<ConfigMap>({ sources: [{ values: {} }], validate: schema as never });
  await expect(stage.load(loader)).rejects.toThrow('neither a value nor issues');
});

test('a hundred of thousands of issues are reported', { timeout: 20_000 }, async () => {
  const stage = new ConfigStage();
  const list = Array.from({ length: 20_000 }, (_, n) => `value${n}`);
  const loader = stage.loader<unknown>({
    sources: [{ values: { list } }],
    validate: z.object({ list: z.array(z.number()) }),
  });
  const error = (await stage.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems).toHaveLength(101);
  expect(error.problems.at(-1)?.message).toBe('19900 more problems');
});

test('neither a cut message, nor a percent-encoded one, nor a path shows a value', async () => {
  const stage = new ConfigStage();
  const secret = 'correct/horse-battery staple';
  const loader = stage.loader<ConfigMap>({
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
  const error = (await stage.load(loader).catch((reason: unknown) => reason)) as ConfigError;
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
  const stage = new ConfigStage();
  const env = { APP_MAXCONN: '5', APP_DB__USERNAME: 'me', APP_TWICE: 'x', APP_NEW: 'y' };
  const seen: unknown[] = [];
  const loader = stage.loader<ConfigMap>({
    sources: [
      { values: { maxConn: 1, db: { userName: 'a' }, twice: 1, Twice: 2, tWice: 3 } },
      { env: { prefix: 'APP_', env } },
    ],
    validate: (values) => {
      seen.push(values);
      throw Object.assign(new Error(), { issues: [{ message: 'm', path: ['maxConn'] }] });
    },
  });
  const error = (await stage.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(seen).toEqual([{ maxConn: '5', db: { userName: 'me' }, twice: 'x', Twice: 2, tWice: 3, new: 'y' }]);
  expect(error.problems).toMatchObject([{ source: 'environment APP_*' }]);
  const exact = stage.loader<ConfigMap>({
    sources: [
      { values: { maxConn: 1 } },
      { env: { prefix: 'APP_', env, transform: (key, value) => ({ key: key.toLowerCase(), value }) } },
    ],
  });
  expect(await stage.load(exact)).toMatchObject({ maxConn: 1, maxconn: '5' });
});

test('a source is mounted under a key', async () => {
  const stage = new ConfigStage();
  stage.write('db', { host: 'a' });
  const loader = stage.loader<ConfigMap>({
    sources: [
      { values: { db: { host: 'default', port: 1 } } },
      { provider: stage.file('db'), at: 'db' },
      { env: { prefix: 'X_', env: { X_Y: 'z' } }, at: 'a.b' },
      { values: { v: 1 }, at: ['with.dot'] },
    ],
  });
  expect(await stage.load(loader)).toEqual({
    db: { host: 'a', port: 1 },
    a: { b: { y: 'z' } },
    'with.dot': { v: 1 },
  });
  for (const at of ['', 'a..b', 5, [''], '__proto__.x']) {
    expect(() => new ConfigLoader({ sources: [{ values: {}, at: at as string }] })).toThrow(TypeError);
  }
});

test('select() with `immediate` calls its listener with the current selection', async () => {
  const stage = new ConfigStage();
  stage.write('a', { n: 1, m: 1 });
  const loader = stage.loader<ConfigMap>({ sources: [{ provider: stage.file('a') }] });
  await stage.load(loader);
  const calls: unknown[] = [];
  loader.select(
    ({ n }) => n,
    (n, previous) => calls.push([n, previous]),
    { immediate: true },
  );
  expect(calls).toEqual([[1, undefined]]);
  stage.write('a', { n: 2, m: 1 });
  await stage.pass();
  stage.write('a', { n: 2, m: 2 });
  await stage.pass();
  expect(calls).toEqual([
    [1, undefined],
    [2, 1],
  ]);
});

test('with one watched source a change is not delayed', async () => {
  const stage = new ConfigStage();
  const volume = new KubeletVolume(stage.path('volume'));
  volume.publish({ a: '{"n":1}' });
  const loader = stage.loader<ConfigMap>({
    sources: [{ values: { d: 1 } }, { provider: stage.file('volume/a') }, { env: { prefix: 'X_' } }],
  });
  await stage.load(loader);
  volume.publish({ a: '{"n":2}' });
  stage.backend.hint();
  await stage.settled();
  expect(loader.current).toEqual({ d: 1, n: 2 });
});

test('several sources are waited for until all have changed, or for settleMs', async () => {
  const stage = new ConfigStage();
  const volume = new KubeletVolume(stage.path('volume'));
  const publish = (a: number, b: number): void => {
    volume.publish({ a: `{"a":${a}}`, b: `{"b":${b}}` });
    stage.backend.hint();
  };
  publish(1, 1);
  const loader = stage.loader<ConfigMap>({
    sources: [{ provider: stage.file('volume/a') }, { provider: stage.file('volume/b') }],
  });
  await stage.load(loader);
  publish(2, 2);
  await stage.settled();
  expect(stage.changes).toEqual([['a', 'b']]);

  publish(3, 2);
  await stage.settled();
  await stage.clock.advance(49);
  expect(stage.changes).toHaveLength(1);
  await stage.clock.advance(1);
  await stage.settled();
  expect(stage.changes).toEqual([['a', 'b'], ['a']]);
});

test('a provider that calls back whenever it is read leads to one update per settleMs', async () => {
  const stage = new ConfigStage();
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
  const loader = stage.loader<ConfigMap>({ sources: [{ provider }] });
  await stage.load(loader);
  await stage.clock.advance(0);
  const before = reads;
  for (let step = 0; step < 3; step += 1) await stage.clock.advance(50);
  expect(reads).toBe(before + 3);
  expect(loader.current).toEqual({ reads });
});

test('`degraded` and `recovered` of a source are emitted with its name', async () => {
  const stage = new ConfigStage();
  stage.write('a', {});
  const loader = stage.loader<ConfigMap>({ sources: [{ provider: stage.file('a') }] });
  const events: unknown[] = [];
  loader.on('degraded', ({ source, error, pollIntervalMs }) =>
    events.push(['degraded', source, error.name, pollIntervalMs]),
  );
  loader.on('recovered', ({ source, backend }) => events.push(['recovered', source, backend]));
  await stage.load(loader);
  stage.backend.refuse(...Array.from({ length: 20 }, () => new Error('no more watches')));
  stage.backend.fail();
  await stage.pass(5_000);
  expect(events).toEqual([['degraded', stage.path('a'), 'BackendError', 1_000]]);
  expect(loader.status()).toMatchObject({
    sources: [{ degraded: true }],
    lastError: { name: 'BackendError' },
  });
  stage.backend.accept();
  await stage.pass(10_000);
  expect(events.slice(1)).toEqual([['recovered', stage.path('a'), 'scripted']]);
  expect(loader.status()).toMatchObject({ state: 'running', sources: [{ degraded: false }] });
  expect(stage.errors).toEqual([]);
});

test('many sources cause no leak warning', async () => {
  const stage = new ConfigStage();
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const names = Array.from({ length: 20 }, (_, n) => `file${n}`);
  for (const name of names) stage.write(name, {});
  const loader = stage.loader<ConfigMap>({
    sources: names.map((name) => ({ provider: stage.file(name) })),
  });
  await stage.load(loader);
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
  const stage = new ConfigStage();
  stage.write('a', { password: SECRET });
  const loader = stage.loader<ConfigMap>({ name: 'app', sources: [{ provider: stage.file('a') }] });
  await stage.load(loader);
  expect(JSON.parse(JSON.stringify(loader))).toEqual(loader.status());
  expect(loader.status()).toMatchObject({ name: 'app', state: 'running', lastError: null, changes: 0 });
  expect(`${JSON.stringify(loader)}${inspect(loader)}`).not.toContain(SECRET);
  stage.write('a', 'not JSON');
  await stage.pass();
  expect(loader.status().sources).toMatchObject([{ state: 'rejected', problems: [{ line: 1 }] }]);
  expect(JSON.parse(JSON.stringify(loader))).toStrictEqual(loader.status());
  expect(stage.rejections).toMatchObject([{ error: { code: 'ERR_CONFIG_INVALID' } }]);
});

test('each load and each update is a traced operation', async () => {
  const stage = new ConfigStage();
  stage.write('a', { n: 1 });
  const loader = stage.loader<ConfigMap>({ name: 'traced', sources: [{ provider: stage.file('a') }] });
  const results: unknown[] = [];
  const onEnd = (message: unknown): void => {
    const { component, result } = message as { component?: { name: string }; result?: string };
    if (component?.name === 'traced') results.push(result);
  };
  subscribe('tracing:resilient-watcher.config.reload:asyncEnd', onEnd);
  onTestFinished(() => void unsubscribe('tracing:resilient-watcher.config.reload:asyncEnd', onEnd));
  await stage.load(loader);
  await loader.check();
  for (const text of ['{', '{"n":2}']) {
    stage.write('a', text);
    await stage.pass();
  }
  stage.remove('a');
  await stage.pass();
  expect(results).toEqual(['accepted', 'unchanged', 'rejected', 'accepted', 'rejected']);
});
