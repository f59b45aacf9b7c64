/** A directory whose files are merged by name. */
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';

import {
  DirectoryProvider,
  dotenvParser,
  type ConfigError,
  type ConfigProvider,
} from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';

import { ConfigScene } from '../support/config-scene.js';

/** A directory `conf.d`, and a provider of it. */
class DirectoryScene extends ConfigScene {
  readonly accepted: string[] = [];
  readonly warnings: string[] = [];
  readonly directory = this.path('conf.d');

  constructor(files: Readonly<Record<string, unknown>> = {}) {
    super();
    mkdirSync(this.directory);
    for (const [name, value] of Object.entries(files)) this.put(name, value);
  }

  put(name: string, value: unknown): void {
    this.write(`conf.d/${name}`, value);
  }

  provider(options: ConstructorParameters<typeof DirectoryProvider>[1] = {}): DirectoryProvider {
    const { clock, backend } = this;
    return new DirectoryProvider(this.directory, { clock, backend, resyncIntervalMs: 0, ...options });
  }

  override loader: ConfigScene['loader'] = (options) => {
    const loader = super.loader(options);
    loader.on('accepted', ({ source }) => this.accepted.push(source.replace(`${this.directory}/`, '')));
    loader.on('warning', ({ message }) => this.warnings.push(message.replaceAll(this.directory, '')));
    return loader;
  };
}

test('files are merged in the order of their names, in which numbers count by their value', async () => {
  const order = [
    '9-b.yaml',
    '10-a-more.json',
    '10-a.yaml',
    '0010-b.yaml',
    '100.toml',
    // A time as its number has more than nine digits.
    '1700000000-z.yaml',
    'A.yaml',
    'a.jsonc',
  ];
  const scene = new DirectoryScene();
  for (const name of order) {
    scene.put(name, name.endsWith('toml') ? `last = "${name}"` : { last: name, [name]: true });
    expect(await scene.provider().read(), name).toMatchObject({ last: name, '9-b.yaml': true });
  }
  const parts = await scene.provider().parts();
  expect(parts.map(({ name }) => name)).toEqual(order.map((name) => `${scene.directory}/${name}`));
});

test('a part that is read again has the warnings of that reading only', async () => {
  const scene = new DirectoryScene({ 'a.env': 'A=x#y' });
  const parsers = { env: dotenvParser };
  const [part] = await scene.provider({ parsers }).parts();
  for (const _ of [1, 2]) {
    await part?.read();
    expect(part?.warnings).toHaveLength(1);
  }
});

test('hidden files, directories, what editors leave behind and what is set aside are left out without a word', async () => {
  const leftovers = [
    '.hidden.yaml',
    '.a.yaml.swp',
    '4913',
    'a.yaml~',
    '#a.yaml#',
    'sedAbC123',
    'a.yaml___jb_tmp___',
  ];
  const aside = ['README', 'README.md', 'a.yaml.bak', 'b.yaml.disabled', 'c.yaml.dpkg-old', 'd.yaml.rpmsave'];
  const scene = new DirectoryScene({ 'a.yaml': 'a: 1' });
  for (const name of [...leftovers, ...aside]) scene.put(name, 'a: 2');
  symlinkSync('nowhere', `${scene.directory}/.#a.yaml`);
  symlinkSync('nowhere', `${scene.directory}/dangling.yaml`);
  mkdirSync(`${scene.directory}/z.yaml`);
  const loader = scene.loader({ sources: [{ provider: scene.provider() }] });
  expect(await scene.load(loader)).toEqual({ a: 1 });
  expect(scene.warnings).toEqual([]);
});

test('a file without a known extension is a warning, until a parser is given or it is ignored', async () => {
  const scene = new DirectoryScene({ 'a.YAML': 'a: 1', 'b.conf': 'B=2' });
  const loader = scene.loader({ sources: [{ provider: scene.provider() }] });
  expect(await scene.load(loader)).toEqual({ a: 1 });
  expect(scene.warnings).toEqual([
    expect.stringMatching(/^\/b\.conf: there is no parser for this extension/),
  ]);
  const known = scene.provider({ parsers: { '.conf': dotenvParser } });
  expect(await known.read()).toEqual({ a: 1, B: '2' });
  const ignoring = scene.provider({ ignore: ['*.conf'] });
  expect(await ignoring.read()).toEqual({ a: 1 });
  expect(ignoring.warnings).toEqual([]);
  expect(await scene.provider({ include: ['c*'] }).read()).toEqual({});
});

test('a bad file keeps its last good values and is named, while the others go on', async () => {
  const scene = new DirectoryScene({
    '10-a.yaml': 'a: 1',
    '20-b.yaml': 'b: 1\nboth: b',
    '30-c.yaml': 'c: 1',
  });
  const validate = z.object({ a: z.number(), b: z.number(), c: z.number(), both: z.string() });
  const loader = scene.loader({ sources: [{ provider: scene.provider() }], validate });
  await scene.load(loader);
  for (const [bad, message] of [
    ['b: [', /20-b\.yaml:1:\d+: not valid YAML/],
    ['\nb: text', /20-b\.yaml:2:4: b: expected number/],
    ['both: b', /20-b\.yaml: b: missing|b: missing/],
    ['- b', /20-b\.yaml: the top level must be a map/],
  ] as const) {
    scene.accepted.length = 0;
    scene.rejections.length = 0;
    scene.put('20-b.yaml', bad);
    scene.put('10-a.yaml', `a: ${bad.length}`);
    await scene.pass();
    expect(loader.current, bad).toEqual({ a: bad.length, b: 1, c: 1, both: 'b' });
    expect(scene.rejections, bad).toHaveLength(1);
    expect(scene.rejections[0]?.sources.map(({ name }) => name)).toEqual([`${scene.directory}/20-b.yaml`]);
    expect(scene.rejections[0]?.problems[0]?.message).toMatch(message);
    const states = loader
      .status()
      .sources.map(({ name, state }) => `${name.slice(scene.directory.length)} ${state}`);
    expect(states).toEqual([' current', '/10-a.yaml current', '/20-b.yaml rejected', '/30-c.yaml current']);
    scene.put('20-b.yaml', 'b: 1\nboth: b');
    await scene.pass();
    expect(scene.accepted, bad).toEqual(['20-b.yaml']);
    expect(loader.status()).toMatchObject({ lastError: null });
  }
});

test('files come and go with their values, and describe() names the file of each', async () => {
  const scene = new DirectoryScene({ '10-a.yaml': 'a: 1\nboth: 1', '30-c.yaml': 'c: 3' });
  const loader = scene.loader({
    sources: [{ values: { both: 0 } }, { provider: scene.provider(), at: 'x' }],
  });
  expect(await scene.load(loader)).toEqual({ both: 0, x: { a: 1, both: 1, c: 3 } });
  scene.put('20-b.yaml', 'both: 2');
  await scene.pass();
  expect(loader.current).toEqual({ both: 0, x: { a: 1, both: 2, c: 3 } });
  const from = (): string[] =>
    loader
      .describe()
      .map(({ path, source = '' }) => `${path.join('.')} ${source.replace(scene.directory, '')}`);
  expect(from()).toEqual(['both values', 'x.a /10-a.yaml', 'x.both /20-b.yaml', 'x.c /30-c.yaml']);
  rmSync(`${scene.directory}/20-b.yaml`);
  rmSync(`${scene.directory}/10-a.yaml`);
  await scene.pass();
  expect(loader.current).toEqual({ both: 0, x: { c: 3 } });
  expect(loader.status().sources).toHaveLength(3);
});

test('a file that goes away while its values are needed keeps them until they are not, or it is back', async () => {
  const scene = new DirectoryScene({ '10-a.yaml': 'a: 1', '20-b.yaml': 'b: 1' });
  const validate = z.object({ a: z.number(), b: z.number() });
  const loader = scene.loader({ sources: [{ provider: scene.provider() }], validate });
  await scene.load(loader);
  rmSync(`${scene.directory}/10-a.yaml`);
  scene.put('20-b.yaml', 'b: 2');
  await scene.pass();
  expect(loader.current).toEqual({ a: 1, b: 2 });
  expect(scene.rejections.map(({ sources }) => sources.map(({ name }) => name))).toEqual([
    [`${scene.directory}/10-a.yaml`],
  ]);
  scene.put('30-c.yaml', 'a: 3');
  await scene.pass();
  expect(loader.current).toEqual({ a: 3, b: 2 });
  expect(scene.accepted).toEqual(['10-a.yaml']);
  expect(loader.status().sources).toHaveLength(3);
});

test('a new file that is bad and one that is bad and deleted hold up nothing', async () => {
  const scene = new DirectoryScene({ 'a.yaml': 'a: 1' });
  const loader = scene.loader({ sources: [{ provider: scene.provider({ maxBytes: 100 }) }] });
  await scene.load(loader);
  scene.put('b.yaml', 'b: {');
  scene.put('c.yaml', `c: ${'x'.repeat(200)}`);
  scene.put('d.yaml', 'd: 1');
  await scene.pass();
  expect(loader.current).toEqual({ a: 1, d: 1 });
  expect(scene.rejections.flatMap(({ problems }) => problems.map(({ code }) => code))).toEqual([
    'ERR_CONFIG_PARSE',
    'ERR_CONFIG_TOO_LARGE',
  ]);
  rmSync(`${scene.directory}/b.yaml`);
  rmSync(`${scene.directory}/c.yaml`);
  await scene.pass();
  expect(scene.accepted).toEqual(['b.yaml', 'c.yaml']);
  expect(loader.status()).toMatchObject({ lastError: null });
});

test('at the start every bad file is named', async () => {
  const scene = new DirectoryScene({ 'a.yaml': 'a: [', 'b.json': '', 'c.yaml': 'c: 1' });
  const loader = scene.loader({ sources: [{ provider: scene.provider() }] });
  const { problems } = (await scene.load(loader).catch((error: unknown) => error)) as ConfigError;
  expect(problems.map(({ source }) => source)).toEqual([
    `${scene.directory}/a.yaml`,
    `${scene.directory}/b.json`,
  ]);
  await expect(scene.provider().read()).rejects.toThrow(`${scene.directory}/a.yaml:1`);
});

test('the files of a mounted ConfigMap change together, one bad one among them', async () => {
  const scene = new DirectoryScene();
  const volume = new KubeletVolume(scene.directory);
  volume.publish({ '1.yaml': 'a: 1', '2.yaml': 'b: 1', '3.yaml': 'c: 1' });
  const loader = scene.loader({ sources: [{ provider: scene.provider() }] });
  await scene.load(loader);
  volume.publish({ '1.yaml': 'a: 2', '2.yaml': 'b: 2', '4.yaml': 'd: [' });
  await scene.pass();
  expect(loader.current).toEqual({ a: 2, b: 2 });
  expect(scene.changes).toEqual([['a', 'b', 'c']]);
  expect(scene.rejections.map(({ sources }) => sources.map(({ name }) => name))).toEqual([
    [`${scene.directory}/4.yaml`],
  ]);
});

test('variables of the files are expanded, and .env files among them set keys as variables do', async () => {
  const scene = new DirectoryScene({ 'a.yaml': 'log: { level: "${LEVEL}" }', 'b.yaml': '\nx: ${NONE}' });
  const loader = scene.loader({
    sources: [{ provider: scene.provider({ expand: { LEVEL: 'debug' } }) }],
  });
  await expect(scene.load(loader)).rejects.toThrow(
    `${scene.directory}/b.yaml:2:4: x: there is no variable NONE`,
  );
  rmSync(`${scene.directory}/b.yaml`);
  expect(await scene.load(loader)).toEqual({ log: { level: 'debug' } });
  const env = new DirectoryScene({ 'c.env': 'APP_LOG__LEVEL=warn\nOTHER=1' });
  const variables = env.loader({ sources: [{ provider: env.provider(), env: { prefix: 'APP_' } }] });
  expect(await env.load(variables)).toEqual({ log: { level: 'warn' } });
});

test('a directory that is missing is refused unless it is optional, and so is a file', async () => {
  const scene = new DirectoryScene({ 'a.yaml': 'a: 1' });
  rmSync(scene.directory, { recursive: true });
  await expect(scene.during(scene.provider().read())).rejects.toMatchObject({ code: 'ERR_CONFIG_MISSING' });
  const loader = scene.loader({ sources: [{ provider: scene.provider({ optional: true }) }] });
  expect(await scene.load(loader)).toEqual({});
  expect(await scene.during(scene.provider({ optional: true }).read())).toBeUndefined();
  mkdirSync(scene.directory);
  scene.put('a.yaml', 'a: 1');
  await scene.pass();
  expect(loader.current).toEqual({ a: 1 });
  rmSync(scene.directory, { recursive: true });
  await scene.pass(2_000);
  expect(loader.current).toEqual({});
  scene.write('conf.d', '');
  await expect(scene.provider().read()).rejects.toThrow('it is a file: use a FileProvider');
});

test('a directory of more than 1 000 files is refused', async () => {
  const scene = new DirectoryScene();
  for (let index = 0; index <= 1_000; index += 1) scene.put(`${index}.json`, {});
  await expect(scene.provider().read()).rejects.toMatchObject({ code: 'ERR_CONFIG_TOO_LARGE' });
  expect(await scene.provider({ ignore: ['0.json'] }).parts()).toHaveLength(1_000);
});

test('a provider of other code has parts, too', async () => {
  const scene = new ConfigScene();
  const part = (name: string, values: unknown): ConfigProvider => ({
    name,
    read: () => Promise.resolve(values),
  });
  let parts = [part('one', { a: 1, b: 1 }), part('two', { b: 2 })];
  const provider: ConfigProvider = {
    name: 'both',
    read: () => Promise.resolve({}),
    parts: () => Promise.resolve(parts),
  };
  const loader = scene.loader({ sources: [{ provider }] });
  expect(await scene.load(loader)).toEqual({ a: 1, b: 2 });
  parts = [part('two', { b: 3 }), part('one', { b: 1 })];
  await scene.during(loader.check());
  expect(loader.current).toEqual({ b: 1 });
  parts = [part('two', 'text')];
  await scene.during(loader.check());
  expect(loader.current).toEqual({ b: 3 });
  expect(scene.rejections.at(-1)?.problems[0]?.message).toBe(
    'two: the top level must be a map, got a string',
  );
});
