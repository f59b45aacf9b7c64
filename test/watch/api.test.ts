/** What the API promises besides what is reported. */
import { once, on } from 'node:events';
import nodeFs, { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';

import {
  ResilientWatcher,
  watch,
  type Change,
  type ResilientWatcherOptions,
  type WatcherStatus,
} from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { afterEach, describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';

import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** A watcher of a file, which has not been started. */
function watchedFile(options: ResilientWatcherOptions = {}) {
  const scene = new ScriptedScene();
  const { file: path, clock, backend } = scene;
  writeFileSync(path, 'one');
  const settings = { clock, backend, settleMs: 0, ...options };
  return { path, backend, settings, watcher: scene.create(path, settings) };
}

test('the listener passed to watch() receives the first state', async () => {
  const { path, settings, backend } = watchedFile();
  const seen: string[] = [];
  const watcher = await watch(path, ({ current }) => seen.push(String(current.content)), settings);
  onTestFinished(() => watcher.close());
  writeFileSync(path, 'two');
  backend.hint();
  await watcher.idle();
  expect(seen).toEqual(['one', 'two']);
});

test('watch() accepts options without a listener, and `current` is set when it resolves', async () => {
  const { path, settings } = watchedFile();
  for (const watcher of [await watch(path, settings), await watch(path, undefined, settings)]) {
    onTestFinished(() => watcher.close());
    expect(String(watcher.current?.content)).toBe('one');
  }
});

test('current is undefined before the first check, and missing when that found nothing', async () => {
  const { watcher } = watchedFile();
  const nowhere = new ResilientWatcher(join(temporaryDirectory(), 'nothing'), {
    backend: new ScriptedBackend(),
  });
  onTestFinished(() => nowhere.close());
  expect([watcher.current, nowhere.current]).toEqual([undefined, undefined]);
  expect([watcher.status().target, watcher.status().revision]).toEqual([null, null]);
  await Promise.all([watcher.start(), nowhere.start()]);
  expect([watcher.current?.kind, nowhere.current?.kind]).toEqual(['file', 'missing']);
});

test('check() before start() rejects, and during the start waits for it', async () => {
  const { watcher, path } = watchedFile();
  await expect(watcher.check()).rejects.toThrow(
    `Cannot check "${path}": the watcher has not been started; call start() first`,
  );
  const started = watcher.start();
  await watcher.check();
  await started;
  expect(String(watcher.current?.content)).toBe('one');
});

test('JSON.stringify(), status() and the name are plain data', async () => {
  const { watcher, path } = watchedFile();
  await watcher.start();
  expect(JSON.parse(JSON.stringify(watcher))).toEqual(watcher.status());
  expect(watcher.status()).toMatchObject({ name: 'app.yaml', path, state: 'watching', lastError: null });
  expect(new ResilientWatcher(['/a/x', new URL('file:///b/y')]).name).toBe('x, y');
  expect(new ResilientWatcher(path, { name: 'policy' }).status().name).toBe('policy');
  expectTypeOf(watcher.toJSON()).toEqualTypeOf<WatcherStatus>();
});

test('once() and on() of node:events accept a watcher', async () => {
  const { watcher, path, backend } = watchedFile();
  const first = once(watcher, 'change') as Promise<[Change]>;
  await watcher.start();
  expect(String((await first)[0].current.content)).toBe('one');
  const controller = new AbortController();
  const changes = on(watcher, 'change', { signal: controller.signal }) as AsyncIterable<[Change]>;
  writeFileSync(path, 'two');
  backend.hint();
  for await (const [{ current }] of changes) {
    expect(String(current.content)).toBe('two');
    break;
  }
  expect(watcher.listenerCount('change')).toBe(0);
});

test('a listener is called with its context, and removed by it', async () => {
  const { watcher } = watchedFile();
  const context = { contents: [] as string[] };
  const listener = function (this: typeof context, { current }: Change): void {
    this.contents.push(String(current.content));
  };
  watcher.on('change', listener, context);
  watcher.once('change', listener, context);
  await watcher.start();
  expect(context.contents).toEqual(['one', 'one']);
  watcher.off('change', listener, context);
  expect(watcher.listenerCount('change')).toBe(0);
});

test('many watchers and iterators share one signal without a leak warning, and leave no listener on it', async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error): number => warnings.push(warning);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const controller = new AbortController();
  const { signal } = controller;
  const add = vi.spyOn(signal, 'addEventListener');
  const watchers = Array.from({ length: 20 }, () => watchedFile({ signal }).watcher);
  const streams = watchers.map((watcher) => watcher[Symbol.asyncIterator]());
  await Promise.all(watchers.map((watcher) => watcher.start()));
  await new Promise(setImmediate);
  expect(warnings).toEqual([]);
  expect(add).toHaveBeenCalledTimes(1);
  controller.abort();
  await Promise.all(watchers.map((watcher) => watcher.close()));
  for (const stream of streams) {
    await stream.next();
    expect((await stream.next()).done).toBe(true);
  }
});

describe('contents', () => {
  test.each([
    ['a file', (root: string) => join(root, 'a'), {}],
    ['a directory', (root: string) => root, {}],
    ['a tree', (root: string) => root, { recursive: true }],
    ['a group', (root: string) => [join(root, 'a'), join(root, 'b')], {}],
  ] as const)('of %s that a listener wipes are whole in later changes', async (_, pathIn, options) => {
    const root = join(temporaryDirectory(), 'root');
    mkdirSync(root);
    writeFileSync(join(root, 'a'), 'a1');
    writeFileSync(join(root, 'b'), 'b1');
    const backend = new ScriptedBackend();
    const watcher = new ResilientWatcher(pathIn(root), {
      backend,
      clock: new FakeClock(),
      settleMs: 0,
      ...options,
    });
    onTestFinished(() => watcher.close());
    const seen: string[] = [];
    watcher.on('change', ({ previous, current }) => {
      const texts = [previous, current].map(({ files }) =>
        [...files.values()].map(({ content }) => String(content)),
      );
      seen.push(texts.map((each) => each.sort().join(' ')).join(' -> '));
      for (const { files } of [previous, current]) for (const { content } of files.values()) content?.fill(0);
    });
    await watcher.start();
    writeFileSync(join(root, 'a'), 'a2');
    backend.hint();
    await watcher.idle();
    const [file] = watcher.current?.kind === 'file' ? [''] : [' b1'];
    expect(seen).toEqual([` -> a1${file}`, `a1${file} -> a2${file}`]);
    expect(String([...(watcher.current?.files.values() ?? [])][0]?.content)).toMatch(/^[ab][12]$/);
  });

  test('of a directory and of a tree are included by the same rule, and omitted from a tree on request', async () => {
    const root = temporaryDirectory();
    writeFileSync(join(root, 'a'), 'text');
    const contentOf = async (options: ResilientWatcherOptions): Promise<string | undefined> => {
      const watcher = await watch(root, { backend: new ScriptedBackend(), ...options });
      onTestFinished(() => watcher.close());
      return watcher.current?.files.get('a')?.content?.toString();
    };
    expect(await contentOf({})).toBe('text');
    expect(await contentOf({ recursive: true })).toBe('text');
    expect(await contentOf({ recursive: { content: false } })).toBeUndefined();
    expect(await contentOf({ maxContentBytes: 1 })).toBeUndefined();
    expect(await contentOf({ maxContentBytes: 1, recursive: true })).toBeUndefined();
  });

  test('of a volume in a tree are omitted on request, too', async () => {
    const root = temporaryDirectory();
    new KubeletVolume(join(root, 'volume')).publish({ key: 'text' });
    const watcher = await watch(root, { backend: new ScriptedBackend(), recursive: { content: false } });
    onTestFinished(() => watcher.close());
    expect(watcher.current?.files.get('volume/key')).toMatchObject({ content: undefined, size: 4 });
  });
});

describe('fake timers of a test runner', () => {
  const runners = {
    vitest: {
      install: () => vi.useFakeTimers(),
      restore: () => vi.useRealTimers(),
    },
    node: { install: () => mock.timers.enable(), restore: () => mock.timers.reset() },
  };
  afterEach(() => {
    for (const { restore } of Object.values(runners)) restore();
  });

  test.each(Object.keys(runners) as (keyof typeof runners)[])(
    'of %s hold up neither a watcher nor a later one',
    async (name) => {
      const { install, restore } = runners[name];
      const { watcher, path, backend } = watchedFile();
      install();
      await watcher.start();
      writeFileSync(path, 'two');
      backend.hint();
      await watcher.idle();
      expect(String(watcher.current?.content)).toBe('two');
      // Requested, and not yet begun when the timers are restored.
      backend.hint();
      restore();
      await watcher.idle();
      const later = watchedFile({ fs: nodeFs });
      await later.watcher.start();
      await later.watcher.close();
      install();
      await watcher.close();
    },
  );
});
