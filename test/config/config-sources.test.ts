/** What sources provide that may surprise: empty variables, service links, elements of lists, keys that are not text. */
import { ConfigLoader, VolumeProvider, type ConfigError, type ConfigWarning } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';

import { ConfigScene } from '../support/config-scene.js';

const PORT = z.object({ port: z.coerce.number(), host: z.string().optional() });

test('an empty variable is ignored with a warning, unless it is allowed', async () => {
  const env = { APP_PORT: '', APP_HOST: '' };
  const load = async (allowEmpty?: boolean): Promise<readonly [unknown, ConfigWarning[]]> => {
    const loader = new ConfigLoader({
      sources: [{ values: { port: 8080 } }, { env: { prefix: 'APP_', env, allowEmpty } }],
      validate: PORT,
    });
    const warnings: ConfigWarning[] = [];
    loader.on('warning', (warning) => warnings.push(warning));
    const config = await loader.load();
    await loader.check();
    await loader.close();
    return [config, warnings];
  };
  const message =
    'environment APP_*: APP_PORT, APP_HOST: empty variables are ignored; "allowEmpty" of the source keeps them';
  expect(await load()).toEqual([{ port: 8080 }, [{ code: 'empty', message }]]);
  expect(await load(true)).toEqual([{ port: 0, host: '' }, []]);
});

test('variables of others cause no warning: those that transform ignores, and empty ones of the whole environment', async () => {
  vi.stubEnv('SHOP_EMPTY', '');
  vi.stubEnv('SHOP_PORT', 'tcp://10.0.0.9:80');
  onTestFinished(() => void vi.unstubAllEnvs());
  const warningsOf = async (transform?: () => undefined, env?: Record<string, string>): Promise<string[]> => {
    const loader = new ConfigLoader({ sources: [{ env: { prefix: '', transform, env } }] });
    const warnings: ConfigWarning[] = [];
    loader.on('warning', (warning) => warnings.push(warning));
    await loader.load();
    await loader.close();
    return warnings.map(({ code }) => code);
  };
  expect(await warningsOf(() => undefined)).toEqual([]);
  expect(await warningsOf()).toEqual(['serviceLink']);
  expect(await warningsOf(undefined, { SHOP_EMPTY: '' })).toEqual([]);
});

test('a message names the variable, and says what sets one that looks like a service link', async () => {
  const messagesOf = async (env: Record<string, string>): Promise<string[]> => {
    const source = { env: { prefix: 'APP_', env } };
    const loader = new ConfigLoader({ sources: [{ values: { port: 1 } }, source], validate: PORT });
    onTestFinished(() => loader.close());
    const error = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
    return error.problems.map(({ message }) => message);
  };
  const place = 'environment APP_*: port (set by APP_PORT): expected number';
  expect(await messagesOf({ APP_PORT: 'x' })).toEqual([place]);
  expect(await messagesOf({ APP_PORT: 'tcp://10.0.0.9:80' })).toEqual([
    `${place}; Kubernetes sets such a value for a Service of that name; set enableServiceLinks: false in the spec of the pod`,
  ]);
});

test('a variable that looks like a service link is a warning, except those that every pod has', async () => {
  const load = async (env: Record<string, string>, prefix: string): Promise<ConfigWarning[]> => {
    const loader = new ConfigLoader({ sources: [{ env: { prefix, env } }] });
    onTestFinished(() => loader.close());
    const warnings: ConfigWarning[] = [];
    loader.on('warning', (warning) => warnings.push(warning));
    await loader.load();
    return warnings;
  };
  const link = 'tcp://10.0.0.9:80';
  const [warning, ...others] = await load({ APP_PORT: link, APP_HOST: 'db', KUBERNETES_PORT: link }, '');
  expect(warning).toMatchObject({ code: 'serviceLink' });
  expect(warning?.message).toMatch(/: APP_PORT: Kubernetes sets such a value .* enableServiceLinks: false/);
  expect(others).toEqual([]);
});

test('a message names the line of a variable in a .env file, and the file and line of a key of a volume', async () => {
  const scene = new ConfigScene();
  scene.write('.env', '# a\nAPP_PORT=x\n');
  const env = scene.loader({
    sources: [{ provider: scene.file('.env', { parser: undefined }), env: { prefix: 'APP_' } }],
    validate: PORT,
  });
  await expect(scene.load(env)).rejects.toThrow(
    `${scene.path('.env')}:2: port (set by APP_PORT): expected number`,
  );
  const volume = new KubeletVolume(scene.path('volume'));
  volume.publish({ port: 'x' });
  const provider = new VolumeProvider(volume.directory, { clock: scene.clock, backend: scene.backend });
  const loader = scene.loader({ sources: [{ provider, at: 'a' }], validate: z.object({ a: PORT }) });
  await expect(scene.load(loader)).rejects.toThrow(`${volume.path('port')}: a.port: expected number`);
});

test('what the parser of a .env file warns of is told also when its variables set keys', async () => {
  const scene = new ConfigScene();
  scene.write('.env', 'APP_PASSWORD=a#b\nAPP_EMPTY=\n');
  const provider = scene.file('.env', { parser: undefined });
  const loader = scene.loader({ sources: [{ provider, env: { prefix: 'APP_' } }] });
  const codes: string[] = [];
  loader.on('warning', ({ code }) => codes.push(code));
  await scene.load(loader);
  expect(codes).toEqual(['comment', 'empty']);
});

test('a variable with an index sets the element of a list, and one beyond its end is refused', async () => {
  const load = async (
    env: Record<string, string>,
    values: Record<string, unknown> = { hosts: ['a', { n: 1 }] },
  ): Promise<unknown> => {
    const loader = new ConfigLoader({ sources: [{ values }, { env: { prefix: 'APP_', env } }] });
    onTestFinished(() => loader.close());
    return loader.load();
  };
  expect(await load({ APP_HOSTS__0: 'x' })).toEqual({ hosts: ['x', { n: 1 }] });
  expect(await load({ APP_HOSTS__1__n: '2', APP_HOSTS__2: 'c' })).toEqual({ hosts: ['a', { n: '2' }, 'c'] });
  expect(await load({ APP_HOSTS: 'x' })).toEqual({ hosts: 'x' });
  expect(await load({ APP_HOSTS__0: 'x' }, {})).toEqual({ hosts: { 0: 'x' } });
  const layers = [{ values: { hosts: ['a', 'b'] } }, { values: { hosts: { 0: 'x' } } }];
  const files = new ConfigLoader({ sources: layers });
  onTestFinished(() => files.close());
  expect(await files.load(), 'only a variable sets an element').toEqual({ hosts: { 0: 'x' } });
  for (const name of ['APP_HOSTS__3', 'APP_HOSTS__NAME', 'APP_HOSTS__00']) {
    await expect(load({ [name]: 'x' })).rejects.toThrow(/hosts\.\w+: the list has 2 elements/);
  }
});

test('a key of a volume that is not text is left out with a warning, provided in base64, or ignored', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  const { clock, backend } = scene;
  volume.publish({ level: 'info' });
  const loader = scene.loader({
    sources: [{ provider: new VolumeProvider(volume.directory, { clock, backend }) }],
  });
  const warnings: ConfigWarning[] = [];
  loader.on('warning', (warning) => warnings.push(warning));
  await scene.load(loader);
  const store = Buffer.from([0xfe, 0xed, 0xfe, 0xed, 0]);
  const utf16 = Buffer.from('text', 'utf16le');
  volume.publish({ level: 'debug', 'store.jks': store, 'utf16.jks': utf16 });
  await scene.pass();
  expect(loader.current).toEqual({ level: 'debug' });
  expect(warnings).toMatchObject([
    { code: 'binary', message: expect.stringContaining('/store.jks: ') as string },
    { code: 'binary', message: expect.stringContaining('/utf16.jks: ') as string },
  ]);
  const read = (options: object): Promise<unknown> => new VolumeProvider(volume.directory, options).read();
  expect(await read({ base64: ['*.jks'] })).toEqual({
    level: 'debug',
    'store.jks': store.toString('base64'),
    'utf16.jks': utf16.toString('base64'),
  });
  expect(await read({ include: ['store.*'], base64: [/jks$/] })).toEqual({
    'store.jks': store.toString('base64'),
  });
  const provider = new VolumeProvider(volume.directory, { ignore: [(key: string) => key.endsWith('.jks')] });
  expect([await provider.read(), provider.warnings]).toEqual([{ level: 'debug' }, []]);
  expect(() => new VolumeProvider('/x', { ignore: ['['] })).toThrow(TypeError);
});

interface Spelled {
  readonly config: unknown;
  readonly warnings: readonly string[];
}

/** What becomes of variables, and what is said of those that set no known key. */
async function spelledBy(
  env: Record<string, string>,
  { values = {}, validate }: { values?: Record<string, unknown>; validate?: unknown },
): Promise<Spelled> {
  const loader = new ConfigLoader<unknown>({
    sources: [{ values }, { env: { prefix: 'APP_', env } }],
    validate: validate as never,
  });
  onTestFinished(() => loader.close());
  const warnings: string[] = [];
  loader.on('warning', ({ code, message }) => warnings.push(`${code}: ${message}`));
  const config = await loader
    .load()
    .catch((error: unknown) => (error as ConfigError).problems.map(({ message }) => message));
  if (loader.state === 'running') await loader.check();
  return { config, warnings };
}

test.each<[string, Record<string, string>, Record<string, unknown>, unknown]>([
  ['underscores', { APP_MAX_CONN: '9' }, { maxConn: 1 }, { maxConn: '9' }],
  ['dashes', { APP_LOG_LEVEL: 'debug' }, { 'log-level': 'info' }, { 'log-level': 'debug' }],
  ['no underscores', { APP_MAXCONN: '9' }, { max_conn: 1 }, { max_conn: '9' }],
  ['nested', { APP_DB_POOL__MAX_CONN: '9' }, { dbPool: { 'max-conn': 1 } }, { dbPool: { 'max-conn': '9' } }],
  [
    'in an element of a list',
    { APP_SHARDS__0__MAX_CONN: '9' },
    { shards: [{ maxConn: 1 }] },
    { shards: [{ maxConn: '9' }] },
  ],
  ['exactly one of two', { APP_MAX_CONN: '9' }, { maxConn: 1, max_conn: 2 }, { maxConn: 1, max_conn: '9' }],
  ['the nearer one of two', { APP_MAXCONN: '9' }, { maxConn: 1, max_conn: 2 }, { maxConn: '9', max_conn: 2 }],
  [
    'parts of one map',
    { APP_MY_DB__HOST: 'h', APP_MYDB__PORT: '5' },
    { myDb: {} },
    { myDb: { host: 'h', port: '5' } },
  ],
])('a variable sets a known key, whatever its spelling: %s', async (_, env, values, config) => {
  expect(await spelledBy(env, { values })).toEqual({ config, warnings: [] });
});

test('a variable sets a key that only the schema knows', async () => {
  const validate = z.object({
    poolMax: z.coerce.number().default(5),
    'log-level': z.string().default('info'),
    db: z.object({ maxConn: z.coerce.number() }).optional(),
    shards: z.array(z.object({ maxConn: z.coerce.number() })).default([]),
    mode: z.union([z.object({ fastPath: z.string() }), z.object({ slowPath: z.string() })]),
  });
  const env = {
    APP_POOL_MAX: '9',
    APP_LOG_LEVEL: 'debug',
    APP_DB__MAX_CONN: '3',
    APP_MODE__SLOW_PATH: '/',
  };
  expect(await spelledBy(env, { validate })).toEqual({
    config: { poolMax: 9, 'log-level': 'debug', db: { maxConn: 3 }, shards: [], mode: { slowPath: '/' } },
    warnings: [],
  });
});

test('two variables that set one key by two spellings are refused', async () => {
  const { config } = await spelledBy({ APP_MAX_CONN: '1', APP_MAXCONN: '2' }, { values: { maxConn: 1 } });
  const twice = 'it is set twice, by names that differ in case, dashes or underscores';
  expect(config).toEqual([`environment APP_*: maxConn: ${twice}`]);
});

const POOL = z.object({
  poolMax: z.coerce.number().default(5),
  log: z.object({ level: z.string() }).optional(),
});

test.each<[string, Record<string, string>, Parameters<typeof spelledBy>[1], string | undefined]>([
  [
    'a misspelled one',
    { APP_POOL_MX: '9' },
    { validate: POOL },
    'APP_POOL_MX sets "pool_mx", a key that neither the schema nor another source has; the nearest one is "poolMax"',
  ],
  [
    'one that may mean two keys',
    { APP_LOG_LEVEL: 'x' },
    { values: { log: { level: 'a' }, logs: 1, 'lo-g': { level: 'b' } } },
    'APP_LOG_LEVEL sets "log_level", a key that neither the schema nor another source has; the nearest one is "lo-g.level"',
  ],
  [
    'one that is like no other',
    { APP_TRACE__URL: 'x' },
    { validate: POOL },
    'APP_TRACE__URL sets "trace.url", a key that neither the schema nor another source has',
  ],
  [
    'a misspelled one that nothing drops',
    { APP_MAX_CON: '9' },
    { values: { maxConn: 1 } },
    'APP_MAX_CON sets "max_con", a key that neither the schema nor another source has; the nearest one is "maxConn"',
  ],
  [
    'one that a function drops',
    { APP_URL: 'x' },
    { validate: () => ({ a: 1 }) },
    'APP_URL sets "url", a key that neither the schema nor another source has',
  ],
  ['one that nothing drops', { APP_HOSTS: 'x' }, { values: { host: 'y' } }, undefined],
  [
    'one that a record takes',
    { APP_LABELS__TEAM: 'x' },
    { validate: z.object({ labels: z.record(z.string(), z.string()) }) },
    undefined,
  ],
  [
    'one that a loose schema takes',
    { APP_POOL_MX: '9' },
    { validate: z.looseObject({ poolMax: z.string().optional() }) },
    undefined,
  ],
])(
  'a variable that sets no known key is told once, with the nearest key: %s',
  async (_, env, options, message) => {
    const { warnings } = await spelledBy(env, options);
    expect(warnings).toEqual(message === undefined ? [] : [`unmatched: environment APP_*: ${message}`]);
  },
);

test('a variable that is misspelled is named also when the configuration is refused for the key that it misses', async () => {
  const { config, warnings } = await spelledBy(
    { APP_MAX_CNN: '9' },
    { validate: z.object({ maxConn: z.string() }) },
  );
  expect(config).toEqual(['validate: maxConn: missing; expected string']);
  expect(warnings).toEqual([expect.stringContaining('APP_MAX_CNN')]);
});
