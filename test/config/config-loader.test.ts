import { type } from 'arktype';
import { ConfigError, ConfigLoader, type ConfigMap, type ConfigValidator } from 'resilient-watcher/config';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { z } from 'zod';

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
  const config = await loader.load();
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
  const error = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
  expect(error.code).toBe('ERR_CONFIG_INVALID');
  expect(error.problems.map(({ code, source, line, column }) => [code, source, line, column])).toEqual([
    ['ERR_CONFIG_PARSE', stage.path('bad.json'), 1, 24],
    ['ERR_CONFIG_MISSING', stage.path('missing.json'), undefined, undefined],
    ['ERR_CONFIG_REFUSED', 'environment A_*', undefined, undefined],
    ['ERR_CONFIG_REFUSED', 'values', undefined, undefined],
  ]);
  expect(error.stack).not.toContain(SECRET);
  expect([stage.backend.subscriptions, stage.clock.pending, loader.state]).toEqual([0, 0, 'idle']);
  expect(() => loader.current).toThrow(ConfigError);
  await expect(loader.load()).rejects.toThrow('bad.json:1:24');
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
  expect(await loader.load()).toEqual({ db: { port: 1, host: 'a' } });

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
  const error = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
  expect(error.message).not.toMatch(/hunter2|42|second|postgres/i);
  expect(error.message).toContain('is not a valid thing');
});

test('a bad update is rejected once, what was good stays, and the next good one is swapped whole', async () => {
  const stage = new ConfigStage();
  stage.write('a.json', { log: { level: 'info' }, n: 1 });
  const loader = stage.loader({
    sources: [{ provider: stage.file('a.json') }],
    validate: z.object({ log: z.object({ level: z.string() }), n: z.number() }),
  });
  const first = await loader.load();
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
  expect(stage.rejections).toHaveLength(8);
  expect(stage.rejections.at(-1)?.problems[0]?.code).toBe('ERR_CONFIG_MISSING');
  expect(loader.status()).toMatchObject({ rejections: 8, changes: 0, sources: [{ state: 'rejected' }] });

  stage.write('a.json', { log: { level: 'info' }, n: 2 });
  await stage.pass();
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

test('sources that change together make one step, and may be right only together', async () => {
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
  await loader.load();
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

test('a validate that never ends, and one that ends too late, stop nothing', async () => {
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
  expect(await loader.load()).toBe(1);
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

test('a parser that throws or never ends stops nothing', async () => {
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

test('an optional file comes and goes, and its values with it', async () => {
  const stage = new ConfigStage();
  const loader = stage.loader({
    sources: [{ values: { n: 1 } }, { provider: stage.file('a', { optional: true }) }],
  });
  expect(await loader.load()).toEqual({ n: 1 });
  stage.write('a', { n: 2 });
  await stage.pass();
  expect(loader.current).toEqual({ n: 2 });
  stage.remove('a');
  await stage.pass();
  expect(loader.current).toEqual({ n: 1 });
  expect(stage.rejections).toEqual([]);
});

test('listeners and selectors that throw hurt nobody, and close() within one ends everything', async () => {
  const stage = new ConfigStage();
  stage.write('a', { n: 1 });
  const loader = stage.loader<ConfigMap>({ sources: [{ provider: stage.file('a') }] });
  await loader.load();
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
  await expect(loader.load()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
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
  const refused = expect(loader.load()).rejects.toThrow(how === 'close()' ? 'closed' : 'enough');
  await validating;
  if (how === 'the signal') controller.abort(new Error('enough'));
  await loader.close();
  await refused;
  expect([stage.backend.subscriptions, stage.clock.pending]).toEqual([0, 0]);
});

test('check() reads what cannot be watched, and tries again what was refused', async () => {
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
  await loader.load();
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
  ['a parser that is none', { sources: [{ provider: { read: () => ({}) }, parser: 1 }] }],
  ['a schema that is none', { sources: [{ values: {} }], validate: {} }],
  ['an unknown option', { sources: [{ values: {} }], settle: 1 }],
])('%s is a TypeError', (_, options) => {
  expect(() => new ConfigLoader(options as never)).toThrow(TypeError);
});
