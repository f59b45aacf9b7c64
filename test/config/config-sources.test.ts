/** What sources provide that may surprise: empty variables, service links, elements of lists, keys that are not text. */
import { ConfigLoader, VolumeProvider, type ConfigError, type ConfigWarning } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';

import { ConfigScene } from '../support/config-scene.js';

const PORT = z.object({ port: z.coerce.number() });

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
  expect(await load(true)).toEqual([{ port: 0 }, []]);
});

test('variables of others cause no warning: those that transform ignores, and empty ones of the whole environment', async () => {
  vi.stubEnv('SHOP_EMPTY', '');
  vi.stubEnv('SHOP_PORT', 'tcp://10.0.0.9:80');
  onTestFinished(() => void vi.unstubAllEnvs());
  const warningsOf = async (transform?: () => undefined): Promise<string[]> => {
    const loader = new ConfigLoader({ sources: [{ env: { prefix: '', transform } }] });
    const warnings: ConfigWarning[] = [];
    loader.on('warning', (warning) => warnings.push(warning));
    await loader.load();
    await loader.close();
    return warnings.map(({ code }) => code);
  };
  expect(await warningsOf(() => undefined)).toEqual([]);
  expect(await warningsOf()).toEqual(['serviceLink']);
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
  volume.publish({ level: 'debug', 'store.jks': store });
  await scene.pass();
  expect(loader.current).toEqual({ level: 'debug' });
  expect(warnings).toMatchObject([
    { code: 'binary', message: expect.stringContaining('/store.jks: ') as string },
  ]);
  const read = (options: object): Promise<unknown> => new VolumeProvider(volume.directory, options).read();
  expect(await read({ base64: ['*.jks'] })).toEqual({
    level: 'debug',
    'store.jks': store.toString('base64'),
  });
  expect(await read({ include: ['store.*'], base64: [/jks$/] })).toEqual({
    'store.jks': store.toString('base64'),
  });
  const provider = new VolumeProvider(volume.directory, { ignore: [(key: string) => key.endsWith('.jks')] });
  expect([await provider.read(), provider.warnings]).toEqual([{ level: 'debug' }, []]);
  expect(() => new VolumeProvider('/x', { ignore: ['['] })).toThrow(TypeError);
});
