import { renameSync, symlinkSync } from 'node:fs';

import {
  jsonParser,
  VolumeProvider,
  yamlParser,
  type ConfigMap,
  type ProviderCallback,
  type VolumeProviderOptions,
} from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { ConfigScene } from '../support/config-scene.js';

test('a second watch() is refused; after unwatch() it is allowed again', async () => {
  const scene = new ConfigScene();
  scene.write('a', '1');
  const provider = scene.file('a');
  let calls = 0;
  const callback: ProviderCallback = () => (calls += 1);
  await provider.unwatch();
  await provider.watch(callback);
  await expect(provider.watch(callback)).rejects.toThrow('already being watched');
  await expect(provider.watch(undefined as never)).rejects.toThrow(TypeError);
  scene.write('a', '2');
  await scene.pass();
  expect(calls).toBe(1);

  await provider.unwatch();
  await provider.unwatch();
  expect([scene.backend.subscriptions, scene.clock.pending]).toEqual([0, 0]);
  scene.write('a', '3');
  await provider.watch(callback);
  expect(calls, 'what changed meanwhile is caught up').toBe(2);
  await provider.unwatch();
});

test('a change between the first read and the watch is reported', async () => {
  const scene = new ConfigScene();
  scene.write('a', '{"n":1}');
  const provider = scene.file('a');
  expect(await provider.read()).toEqual({ n: 1 });
  scene.write('a', '{"n":2}');
  const calls: unknown[] = [];
  await provider.watch(async () => calls.push(await provider.read()));
  await scene.pass();
  expect(calls).toEqual([{ n: 2 }]);
  await provider.unwatch();
});

test('unwatch() and a new watch() inside the callback', async () => {
  const scene = new ConfigScene();
  scene.write('a', '1');
  const provider = scene.file('a');
  const calls: string[] = [];
  let again: Promise<void> | undefined;
  await provider.watch(() => {
    calls.push('first');
    void provider.unwatch();
    again = provider.watch(() => calls.push('second'));
  });
  scene.write('a', '2');
  await scene.pass();
  await again;
  scene.write('a', '3');
  await scene.pass();
  expect(calls).toEqual(['first', 'second']);
  await provider.unwatch();
});

test('a callback that throws, a lost backend and a removed file do not end watching', async () => {
  const scene = new ConfigScene();
  scene.write('a', '1');
  const provider = scene.file('a', { parser: undefined });
  const calls: string[] = [];
  await provider.watch(async (event, error) => {
    calls.push(
      error
        ? error.name
        : String(await provider.readBytes().catch((reason: unknown) => (reason as Error).name)),
    );
    expect(event === undefined).toBe(error !== undefined);
    if (calls.length === 1) throw new Error('callback');
  });
  scene.write('a', '2');
  await scene.pass();
  scene.backend.fail();
  scene.remove('a');
  await scene.pass();
  await scene.pass(5_000);
  scene.write('a', '3');
  await scene.pass();
  expect(calls).toEqual(['2', 'ListenerError', 'ConfigError', '3']);
  await provider.unwatch();
});

test('once a file is readable again, its bytes are those that were reported, and no part of a write', async () => {
  const scene = new ConfigScene();
  scene.write('a', 'old');
  const provider = scene.file('a');
  const codes: unknown[] = [];
  await provider.watch((_, error) => {
    if (error) codes.push((error as NodeJS.ErrnoException).code);
  });
  renameSync(scene.path('a'), scene.path('aside'));
  symlinkSync('a', scene.path('a'));
  await scene.pass();
  expect(codes).toEqual(['ERR_TARGET_PATH']);
  renameSync(scene.path('aside'), scene.path('a'));
  await scene.pass();
  // Somebody begins to write it in place, of which nothing has been told.
  scene.write('a', 'n');
  expect(String(await provider.readBytes())).toBe('old');
  await provider.unwatch();
});

test('a volume is read as keys, all of one revision, and every swap is followed', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  const { clock, backend } = scene;
  volume.publish({ 'db.host': 'a', 'db.port': '1', 'limits.yaml': 'rate: 5' });
  const provider = new VolumeProvider(volume.directory, {
    clock,
    backend,
    resyncIntervalMs: 0,
    delimiter: '.',
    parsers: { '.yaml': yamlParser },
  });
  expect(await provider.read()).toEqual({ db: { host: 'a', port: '1' }, limits: { rate: 5 } });
  const loader = scene.loader({ sources: [{ provider }] });
  await scene.load(loader);
  volume.publish({ 'db.host': 'b', 'db.port': '2', 'limits.yaml': 'rate: [' });
  await scene.pass();
  expect(scene.rejections).toMatchObject([
    {
      sources: [{ name: volume.directory, digest: expect.stringMatching(/^set:/) as string }],
      problems: [{ source: volume.path('limits.yaml'), line: 1 }],
    },
  ]);
  expect(loader.current).toMatchObject({ db: { host: 'a' } });
  volume.publish({ 'db.host': 'b', 'db.port': '2' });
  await scene.pass();
  expect(loader.current).toEqual({ db: { host: 'b', port: '2' } });
  expect(scene.changes).toEqual([['db.host', 'db.port', 'limits']]);

  for (const files of [{ a: 'x', 'a.b': 'y' }, { '__proto__.x': 'y' }, { big: 'x'.repeat(2 ** 20 + 1) }]) {
    volume.publish(files);
    await scene.pass();
  }
  expect(scene.rejections.slice(1).map(({ problems }) => problems[0]?.code)).toEqual([
    'ERR_CONFIG_PARSE',
    'ERR_CONFIG_PARSE',
    'ERR_CONFIG_TOO_LARGE',
  ]);
  expect(loader.current).toEqual({ db: { host: 'b', port: '2' } });
});

test('extensions of a volume may have the dot or not, and white space is trimmed on request', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  volume.publish({ 'a.YAML': 'n: 1', 'b.json': '{"n":2}', password: ' s3cret\n' });
  const read = (options: VolumeProviderOptions): Promise<unknown> =>
    new VolumeProvider(volume.directory, options).read();
  expect(await read({ parsers: { yaml: yamlParser, '.json': jsonParser } })).toEqual({
    a: { n: 1 },
    b: { n: 2 },
    password: ' s3cret\n',
  });
  expect(await read({ trim: true })).toEqual({ 'a.YAML': 'n: 1', 'b.json': '{"n":2}', password: 's3cret' });
});

test('a provider is watched by one loader: a second one is refused, and the first is not affected', async () => {
  const scene = new ConfigScene();
  scene.write('a', { n: 1 });
  const provider = scene.file('a');
  const first = scene.loader<ConfigMap>({ sources: [{ provider }] });
  const second = scene.loader<ConfigMap>({ sources: [{ provider }] });
  await scene.load(first);
  await expect(scene.load(second)).rejects.toMatchObject({ problems: [{ code: 'ERR_CONFIG_WATCHED' }] });
  const closed = scene.loader<ConfigMap>({ sources: [{ provider }] });
  const refused = expect(closed.load()).rejects.toThrow();
  await closed.close();
  await refused;
  scene.write('a', { n: 2 });
  await scene.pass();
  expect(first.current).toEqual({ n: 2 });
  await first.close();
  await scene.load(second);
  expect(second.current).toEqual({ n: 2 });
});

test('contents above a limit are too large; that is no mount that never updates', async () => {
  const scene = new ConfigScene();
  const volume = new KubeletVolume(scene.path('volume'));
  const { clock, backend } = scene;
  volume.publish({ a: 'x', b: 'y' });
  const provider = new VolumeProvider(volume.directory, {
    clock,
    backend,
    resyncIntervalMs: 0,
    maxTotalBytes: 1,
  });
  const loader = scene.loader<ConfigMap>({ sources: [{ provider }] });
  await expect(scene.load(loader)).rejects.toMatchObject({ problems: [{ code: 'ERR_CONFIG_TOO_LARGE' }] });
  expect(scene.errors).toEqual([]);
});
