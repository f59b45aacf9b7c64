/** Arguments, files by NODE_ENV, and the description of the layers. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { type } from 'arktype';
import { ConfigLoader, nodeEnvFiles, type ArgumentOptions } from 'resilient-watcher/config';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

import { ConfigScene } from '../support/config-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { needs } from '../support/other-systems.js';

const SECRET = 'hunter2';

async function valuesOf(
  ...sources: ConstructorParameters<typeof ConfigLoader>[0]['sources']
): Promise<unknown> {
  const loader = new ConfigLoader({ sources });
  onTestFinished(() => loader.close());
  return loader.load();
}

test.each<[string, ArgumentOptions, unknown]>([
  [
    'without options: what follows =, true and false',
    {
      args: [
        'run',
        '--log.level=debug',
        '--max-conn=5',
        '--max-conn=6',
        '--quiet',
        '--no-color',
        '--',
        '--x=1',
      ],
    },
    { log: { level: 'debug', pretty: true }, maxConn: '6', quiet: true, color: false },
  ],
  [
    'with options: the next argument, short names, lists',
    {
      args: ['-m', '7', '--log.level', 'warn', '--tag=a', '--tag=b', 'rest'],
      options: {
        'max-conn': { type: 'string', short: 'm' },
        'log.level': { type: 'string' },
        tag: { type: 'string', multiple: true },
      },
    },
    { log: { level: 'warn', pretty: true }, maxConn: '7', color: true, tag: ['a', 'b'] },
  ],
  [
    'with another delimiter',
    { args: ['--log:level=x', '--a.b=y'], delimiter: ':' },
    { log: { level: 'x', pretty: true }, maxConn: 1, color: true, 'a.b': 'y' },
  ],
])('arguments override lower layers, %s', async (_, args, expected) => {
  const values = { log: { level: 'info', pretty: true }, maxConn: 1, color: true };
  expect(await valuesOf({ values }, { args })).toEqual(expected);
});

test.each<[string, ArgumentOptions]>([
  ['that is not among the options', { args: [`--nope=${SECRET}`], options: { port: { type: 'string' } } }],
  ['without its value', { args: ['--port'], options: { port: { type: 'string' } } }],
  ['below the value of another', { args: [`--a=${SECRET}`, `--a.b=${SECRET}`] }],
  ['that would reach a prototype', { args: [`--constructor.x=${SECRET}`] }],
])('an argument %s is refused, without its value', async (_, args) => {
  const error: unknown = await valuesOf({ args }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ problems: [{ code: 'ERR_CONFIG_PARSE', source: 'arguments' }] });
  expect(String(error)).toMatch(/--(?:nope|port|a|constructor)/);
  expect(String(error)).not.toContain(SECRET);
});

test('a value in the place of an option is refused, and not shown', async () => {
  for (const option of [`--${SECRET} 1`, `--a'. ${SECRET}`, `--${SECRET}"`]) {
    const args = { args: ['--port', option], options: { port: { type: 'boolean' } } } as const;
    const error: unknown = await valuesOf({ args }).catch((reason: unknown) => reason);
    expect(String(error)).toContain('an argument is none of the options');
    expect(inspect(error)).not.toContain(SECRET);
  }
});

test('options that parseArgs refuses are refused by the constructor', () => {
  const options = { port: { type: 'number' } } as unknown as ArgumentOptions['options'];
  expect(() => new ConfigLoader({ sources: [{ args: { options } }] })).toThrow(TypeError);
});

test('the file of the environment overrides the one without, and may come and go', async () => {
  const scene = new ConfigScene();
  scene.write('app.json', { level: 'info', port: 1 });
  const path = scene.path('app.json');
  const { clock, backend } = scene;
  const files = nodeEnvFiles(path, { nodeEnv: 'production', clock, backend, resyncIntervalMs: 0 });
  const loader = scene.loader({ sources: files });
  expect(await scene.load(loader)).toEqual({ level: 'info', port: 1 });
  scene.write('app.production.json', { level: 'warn' });
  await scene.pass(1_000);
  expect(loader.current).toEqual({ level: 'warn', port: 1 });
});

test('without an environment there is one file, and one that leaves the directory is refused', () => {
  needs('posix');
  const names = (nodeEnv: string, path = '/etc/app.yaml'): string[] =>
    nodeEnvFiles(path, { nodeEnv }).map(({ provider }) => provider.name);
  expect(names('eu, canary')).toEqual(['/etc/app.yaml', '/etc/app.eu.yaml', '/etc/app.canary.yaml']);
  expect(names('')).toEqual(['/etc/app.yaml']);
  expect(names('test', '/app/.env')).toEqual(['/app/.env', '/app/.env.test']);
  expect(names('production', '/app/default.json')).toEqual(['/app/default.json', '/app/production.json']);
  expect(() => names('../x')).toThrow(/NODE_ENV must be a part of a file name/);
});

test('describe() names each key, its type, its default and where its value is from, but no value', async () => {
  needs('posix');
  const path = join(temporaryDirectory(), 'app.json');
  writeFileSync(
    path,
    JSON.stringify({ db: { host: SECRET, password: SECRET }, list: [SECRET], more: { [`a|b`]: 1 } }),
  );
  const loader = new ConfigLoader({
    sources: [
      { name: 'defaults', values: { log: { level: 'info' }, db: { host: 'localhost', password: SECRET } } },
      ...nodeEnvFiles(path, { nodeEnv: '' }),
      { env: { prefix: 'APP_', env: { APP_LOG__LEVEL: 'warn' } } },
    ],
    validate: z.object({
      log: z.object({ level: z.enum(['info', 'warn']).describe('How much is logged') }),
      db: z.object({
        host: z.string(),
        password: z.string(),
        pin: z.string().default(SECRET).meta({ writeOnly: true }),
      }),
      port: z.coerce.number().default(80),
      user: z.string().optional(),
      more: z.record(z.string(), z.number()),
      list: z.array(z.string()),
    }),
  });
  onTestFinished(() => loader.close());
  expect(loader.describe().map(({ source }) => source)).not.toContain('default');
  await loader.load();
  expect(loader.describe('markdown').replaceAll(path, 'app.json').split('\n')).toEqual([
    '| key | type | default | source | description |',
    '| --- | --- | --- | --- | --- |',
    String.raw`| log.level | "info" \| "warn" | "info" | environment APP_* | How much is logged |`,
    '| db.host | string | "localhost" | app.json |  |',
    '| db.password | string | [redacted] | app.json |  |',
    '| db.pin | string | [redacted] | default |  |',
    '| port | number | 80 | default |  |',
    '| user | string |  |  |  |',
    '| list | array |  | app.json |  |',
    String.raw`| more.a\|b | number |  | app.json |  |`,
  ]);
  expect(loader.describe('text')).toMatch(/^port {9}number {11}80 {11}default$/m);
  expect(JSON.stringify(loader.describe()) + loader.describe('text')).not.toContain(SECRET);
});

test('describe() takes the types of the values where the validator has none to offer', async () => {
  const values = {
    a: 1,
    b: { c: 'x' },
    d: null,
    e: {},
    url: `https://me:${SECRET}@host`,
    list: [{ credential: SECRET }],
  };
  const rows = async (
    validate: ConstructorParameters<typeof ConfigLoader>[0]['validate'],
  ): Promise<unknown> => {
    const loader = new ConfigLoader({ sources: [{ values }], validate });
    await loader.load();
    await loader.close();
    expect(loader.describe('text')).not.toContain(SECRET);
    return loader.describe().map(({ path, type: of, source }) => `${path.join('.')} ${of} ${source}`);
  };
  const expected = [
    'a number values',
    'b.c string values',
    'd null values',
    'e object values',
    'url string values',
    'list array values',
  ];
  expect(await rows(undefined)).toEqual(expected);
  expect(await rows(type({ a: 'number' }) as never)).toEqual(expected);
});

test.each([
  ['zod', z.object({ maxConn: z.coerce.number().default(5), at: z.date().optional() })],
  ['arktype', type({ maxConn: 'string.numeric.parse = "5"', 'at?': 'Date' })],
])('a date in a schema of %s does not hide the other keys', async (_, validate) => {
  const env = { prefix: 'APP_', env: { APP_MAX_CONN: '7' } };
  const loader = new ConfigLoader<{ maxConn: number }>({ sources: [{ env }], validate: validate });
  expect((await loader.load()).maxConn).toBe(7);
  await loader.close();
  const sources = Object.fromEntries(loader.describe().map(({ path, source }) => [path.join('.'), source]));
  expect(sources).toEqual({ maxConn: 'environment APP_*', at: undefined });
});

test('without options, arguments with a single dash are ignored, as the page says', async () => {
  const args = ['-v', '-p', '--port=1', '-xyz=2', 'name', '--', '--after'];
  await using loader = new ConfigLoader({ sources: [{ args: { args } }] });
  expect(await loader.load()).toEqual({ port: '1' });
});

test('what a provider or transform of the application throws is in the message and the cause', async () => {
  const failure = new TypeError('the store is closed');
  const fail = (): never => {
    throw failure;
  };
  for (const source of [
    { provider: { name: 'store', read: fail } },
    { env: { prefix: 'APP_', env: { APP_A: '1' }, transform: fail } },
  ]) {
    await using loader = new ConfigLoader({ sources: [source] });
    await expect(loader.load()).rejects.toMatchObject({
      message: expect.stringContaining('cannot read it: the store is closed (TypeError)') as string,
      cause: { name: 'TypeError', message: 'the store is closed' },
    });
  }
});

test('what transform must return is said, not what it has returned', async () => {
  const env = {
    prefix: 'APP_',
    env: { APP_A: 'hunter2' },
    transform: (_name: string, value: string) => value,
  };
  await using loader = new ConfigLoader({ sources: [{ env: env as never }] });
  await expect(loader.load()).rejects.toThrow(
    'APP_A: transform must return { key, value } or undefined, got a string',
  );
});
