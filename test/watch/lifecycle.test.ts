import { writeFileSync } from 'node:fs';
import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import {
  ClosedError,
  ListenerError,
  ResilientWatcher,
  watch,
  type Change,
  type HintSink,
  type ResilientWatcherOptions,
  type WatchBackend,
} from 'resilient-watcher';
import { ScriptedBackend } from 'resilient-watcher/testing';
import { expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';
import { fsWith } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** A watcher of a key of a volume, which has not been started. */
function watchedKey(options: ResilientWatcherOptions = {}) {
  const scene = new ScriptedScene();
  const { volume, clock, backend } = scene;
  volume.publish({ key: 'v1' });
  const watcher = scene.create(volume.path('key'), options);
  const publish = async (text: string): Promise<void> => {
    volume.publish({ key: text });
    await scene.hint();
  };
  return { volume, clock, backend, watcher, publish };
}

test('start() reports the current contents, and a second call returns the same promise', async () => {
  const { watcher } = watchedKey();
  const changes: Change[] = [];
  watcher.on('change', (change) => changes.push(change));
  expect(watcher.state).toBe('idle');
  const started = watcher.start();
  expect(watcher.start()).toBe(started);
  await started;
  expect(watcher.state).toBe('watching');
  expect(changes).toHaveLength(1);
  expect(changes[0]).toMatchObject({
    cause: 'start',
    previous: { kind: 'missing' },
    current: { kind: 'file' },
  });
});

test('no check of the start is left when start() has resolved, however long the backend takes', async () => {
  const scene = new ScriptedScene();
  const { clock, file } = scene;
  writeFileSync(file, 'new');
  const backend: WatchBackend = {
    name: 'slow',
    subscribe: async (sink) => {
      // Longer than the file takes to settle.
      await new Promise<void>((resolve) => void clock.schedule(resolve, 60));
      return scene.backend.subscribe(sink);
    },
  };
  const watcher = scene.create(file, { backend, resyncIntervalMs: 0 });
  scene.record();
  // At the very moment.
  const written = ResilientWatcher.prototype.start.call(watcher).then(() => writeFileSync(file, 'later'));
  await scene.pass(1_000);
  await written;
  expect(scene.events).toEqual(['change new by start']);
});

test('the constructor does no I/O', () => {
  const { backend, clock } = watchedKey();
  expect(backend.subscribed).toBe(0);
  expect(clock.pending).toBe(0);
});

test('start() and check() after close() reject with ERR_CLOSED, and close() may be called again', async () => {
  const { watcher } = watchedKey();
  await watcher.close();
  await expect(watcher.start()).rejects.toThrow(ClosedError);
  await expect(watcher.start()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await expect(watcher.check()).rejects.toThrow(ClosedError);
  await watcher.close();
  await watcher.idle();
  expect(watcher.state).toBe('closed');
});

test('close() within a listener of `change` does not deadlock', async () => {
  const { watcher, publish } = watchedKey();
  const seen: string[] = [];
  watcher.on('change', ({ current }) => {
    seen.push(String(current.content));
    void watcher.close().then(() => seen.push('closed'));
  });
  await watcher.start().catch((error: unknown) => expect(error).toBeInstanceOf(ClosedError));
  await watcher.close();
  await publish('v2');
  expect(seen).toEqual(['v1', 'closed']);
});

test('a signal closes the watcher, and leaves no listener', async () => {
  const controller = new AbortController();
  const { watcher, clock, backend } = watchedKey({ signal: controller.signal });
  await watcher.start();
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  controller.abort();
  await watcher.close();
  expect(watcher.state).toBe('closed');
  expect([clock.pending, backend.subscriptions]).toEqual([0, 0]);
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
});

test('a signal that has aborted makes start() reject with its reason', async () => {
  const { watcher, backend } = watchedKey({ signal: AbortSignal.abort(new Error('enough')) });
  await expect(watcher.start()).rejects.toThrow('enough');
  expect(backend.subscribed).toBe(0);
});

test('a listener that throws or rejects affects neither the watcher nor other listeners', async () => {
  const { watcher, publish } = watchedKey();
  const errors: Error[] = [];
  const heard: string[] = [];
  watcher.on('change', () => {
    throw new Error('thrown');
  });
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- what users do
  watcher.once('change', () => Promise.reject(new Error('rejected')));
  watcher.on('change', ({ current }) => heard.push(String(current.content)));
  watcher.on('error', (error) => {
    errors.push(error);
    throw new Error('and the listener of errors fails too');
  });
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  await watcher.start();
  await publish('v2');
  expect(heard).toEqual(['v1', 'v2']);
  expect(errors.map((error) => (error.cause as Error).message).sort()).toEqual([
    'rejected',
    'thrown',
    'thrown',
  ]);
  expect(errors.every((error) => error instanceof ListenerError)).toBe(true);
  expect(warned).toHaveBeenCalledTimes(3);
});

test('an error without a listener becomes a process warning', async () => {
  const { watcher } = watchedKey();
  watcher.on('change', () => {
    throw new Error('oops');
  });
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  await watcher.start();
  expect(warned).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'ERR_LISTENER' }));
});

test('for await yields the newest state instead of a backlog, and close() ends it', async () => {
  const { watcher, publish } = watchedKey();
  await watcher.start();
  const seen: string[] = [];
  for await (const { previous, current } of watcher) {
    seen.push(`${String(previous.content)}>${String(current.content)}`);
    if (seen.length === 1) {
      await publish('v2');
      await publish('v3');
      await publish('v4');
    } else {
      void watcher.close();
    }
  }
  expect(seen).toEqual(['undefined>v1', 'v1>v4']);
});

test('for await before start() ends when the signal aborts, all that waits at once, and leaves no listener', async () => {
  const controller = new AbortController();
  const { watcher } = watchedKey({ signal: controller.signal });
  const left = watcher[Symbol.asyncIterator]();
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  await left.return?.();
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  const waiting = watcher[Symbol.asyncIterator]();
  const ends: unknown[] = [];
  for (let count = 1; count <= 3; count += 1) void waiting.next().then((end) => ends.push(end));
  controller.abort();
  await expect.poll(() => ends).toEqual(Array(3).fill({ done: true, value: undefined }));
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
});

test('for await skips a change that was reverted while the consumer was busy', async () => {
  const { watcher, publish } = watchedKey();
  await watcher.start();
  const stream = watcher[Symbol.asyncIterator]();
  await stream.next();
  await publish('v2');
  await publish('v1');
  const next = stream.next();
  await publish('v3');
  expect(await next).toMatchObject({
    value: { previous: { content: Buffer.from('v1') }, current: { content: Buffer.from('v3') } },
  });
  await stream.return?.();
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});

test('watch() starts, and `await using` closes', async () => {
  const { volume, clock, backend } = watchedKey();
  let outside: ResilientWatcher;
  {
    await using watcher = await watch(volume.path('key'), { clock, backend });
    expectTypeOf(watcher).toEqualTypeOf<ResilientWatcher>();
    expect(watcher.state).toBe('watching');
    outside = watcher;
  }
  expect(outside.state).toBe('closed');
  expect([clock.pending, backend.subscriptions]).toEqual([0, 0]);
});

test('contents above the limit are compared by identity and not included', async () => {
  const { watcher, volume, publish } = watchedKey({ maxContentBytes: 4 });
  await watcher.start();
  expect(watcher.current).toMatchObject({
    content: Buffer.from('v1'),
    digest: expect.stringMatching(/^sha256:/) as string,
  });
  await publish('too long');
  expect(watcher.current).toMatchObject({
    kind: 'file',
    content: undefined,
    size: 8,
    digest: expect.stringMatching(/^stat:/) as string,
  });
  const digest = watcher.current?.digest;
  volume.publish({ key: 'too long' });
  await publish('also long');
  expect(watcher.current?.digest).not.toBe(digest);
  await publish('fits');
  expect(String(watcher.current?.content)).toBe('fits');
});

test('a change has the cause by which it was found', async () => {
  const { watcher, volume, backend } = watchedKey();
  const causes: string[] = [];
  watcher.on('change', ({ cause }) => causes.push(cause));
  const { subscribe } = ScriptedBackend.prototype;
  // After the first look, and before anything is listened to.
  Object.assign(backend, {
    subscribe: (sink: HintSink) => {
      volume.publish({ key: 'v2' });
      return subscribe.call(backend, sink);
    },
  });
  await watcher.start();
  volume.publish({ key: 'v3' });
  await watcher.check();
  expect(causes).toEqual(['start', 'scripted', 'check']);
});

test('a closed watcher says of no backend that it listens', async () => {
  const { watcher } = watchedKey({ resyncIntervalMs: 0 });
  await watcher.start();
  expect(watcher.status()).toMatchObject({ backend: 'scripted', checkIntervalMs: null });
  await watcher.close();
  expect(watcher.status()).toMatchObject({ backend: null, degraded: null, checkIntervalMs: null });
});

test('a look that fails for no reason of the disk is an `error`, and the next one works', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'old');
  const bug = 'a bug of the file system';
  let isBroken = false;
  const fs = fsWith({
    each: () => {
      if (isBroken) throw new Error(bug);
    },
  });
  const watcher = scene.create(scene.file, { fs });
  const errors: unknown[] = [];
  watcher.on('error', (error) => errors.push(error));
  await watcher.start();
  isBroken = true;
  await scene.hint();
  expect(errors).toMatchObject([{ message: bug }]);
  isBroken = false;
  writeFileSync(scene.file, 'new');
  await scene.settle();
  expect(String(watcher.current?.content)).toBe('new');
});

test('printed forms never contain contents', async () => {
  const { watcher, publish } = watchedKey();
  let change: Change | undefined;
  watcher.on('change', (next) => (change = next));
  await watcher.start();
  await publish('s3cret-value');
  expect(String(change?.current.content)).toBe('s3cret-value');
  for (const printed of [
    inspect(change, { depth: 9, showHidden: true }),
    JSON.stringify(change),
    JSON.stringify(watcher.status()),
    inspect(watcher, { depth: 9 }),
  ]) {
    expect(printed).not.toContain('s3cret');
    expect(printed).not.toContain(Buffer.from('s3cret').toString('hex'));
    expect(printed).not.toContain(JSON.stringify([...Buffer.from('s3cret')]).slice(1, -1));
  }
});

test('close() waits for a backend that is being subscribed, and closes the subscription', async () => {
  let grant = (): void => undefined;
  let ask = (): void => undefined;
  const granted = new Promise<void>((resolve) => (grant = resolve));
  const asked = new Promise<void>((resolve) => (ask = resolve));
  const backend = new ScriptedBackend();
  const slow: WatchBackend = {
    name: 'slow',
    subscribe: (sink) => {
      ask();
      return granted.then(() => backend.subscribe(sink));
    },
  };
  const { watcher } = watchedKey({ backend: slow });
  const refused = expect(watcher.start()).rejects.toThrow(ClosedError);
  await asked;
  const closed = watcher.close();
  grant();
  await closed;
  expect([backend.subscribed, backend.subscriptions]).toEqual([1, 0]);
  await refused;
});
