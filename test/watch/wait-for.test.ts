/** `waitFor()`, patterns to ignore, and what changed since a saved state. */
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import {
  ListenerError,
  ResilientWatcher,
  waitFor,
  type Change,
  type ResilientWatcherOptions,
  type Snapshot,
} from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** A watcher that sees changes when the test checks. */
async function start(
  path: string | string[],
  options: ResilientWatcherOptions = {},
): Promise<{ watcher: ResilientWatcher; changes: Change[] }> {
  const watcher = new ResilientWatcher(path, {
    backend: new ScriptedBackend(),
    resyncIntervalMs: 0,
    settleMs: 0,
    missingGraceMs: 0,
    ...options,
  });
  onTestFinished(() => watcher.close());
  const changes: Change[] = [];
  watcher.on('change', (change) => void changes.push(change));
  await watcher.start();
  return { watcher, changes };
}

describe('waitFor', () => {
  test('resolves immediately if the condition is met, and otherwise when it is', async () => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
    const there = waitFor(volume.directory);
    const both = waitFor(volume.directory, ({ files }) => files.has('tls.crt') && files.has('tls.key'));
    volume.publish({ 'tls.crt': 'c' });
    expect((await there).files.has('tls.crt')).toBe(true);
    volume.publish({ 'tls.crt': 'c', 'tls.key': 'k' });
    expect([...(await both).files.keys()]).toEqual(['tls.crt', 'tls.key']);
    expect((await waitFor(volume.path('tls.key'))).content?.toString()).toBe('k');
    const gone = waitFor(volume.directory, ({ kind }) => kind === 'missing');
    volume.remove();
    expect((await gone).kind).toBe('missing');
    expect((await waitFor(volume.directory, ({ kind }) => kind === 'missing')).kind).toBe('missing');
  });

  test('rejects at the timeout or when its signal aborts, and leaves nothing behind', async () => {
    const path = join(temporaryDirectory(), 'never');
    const [clock, backend] = [new FakeClock(), new ScriptedBackend()];
    const waiting = waitFor(path, undefined, { clock, backend, timeoutMs: 60_000 });
    const late = expect(waiting).rejects.toMatchObject({
      code: 'ERR_TARGET_TIMEOUT',
      message: expect.stringMatching(
        /never" is not as expected after 60000 ms; it (?:is missing|has not been read yet)$/,
      ) as string,
    });
    await clock.advance(59_000);
    await clock.advance(1_000);
    await late;
    const controller = new AbortController();
    const aborted = expect(
      waitFor(path, undefined, { clock, backend, signal: controller.signal }),
    ).rejects.toThrow('enough');
    await clock.advance(1);
    controller.abort(new Error('enough'));
    await aborted;
    expect([clock.pending, backend.subscriptions]).toEqual([0, 0]);
  });

  test('an asynchronous predicate is awaited, and a change while it runs is not missed', async () => {
    const path = write(join(temporaryDirectory(), 'file'), 'old');
    const seen: string[] = [];
    const isNew = async ({ content }: Snapshot): Promise<boolean> => {
      const text = String(content);
      seen.push(text);
      if (text === 'old') {
        write(`${path}.new`, 'new');
        renameSync(`${path}.new`, path);
      }
      await new Promise(setImmediate);
      return text === 'new';
    };
    const { content } = await waitFor(path, isNew, { settleMs: 0, resyncIntervalMs: 0 });
    expect([String(content), seen]).toEqual(['new', ['old', 'new']]);
    await expect(waitFor(path, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  test('rejects with the error of the predicate, and for wrong arguments', async () => {
    const path = write(join(temporaryDirectory(), 'file'), '{');
    await expect(waitFor(path, ({ content }) => JSON.parse(String(content)) as boolean)).rejects.toThrow(
      SyntaxError,
    );
    await expect(waitFor(path, 'yes' as never)).rejects.toThrow(TypeError);
    await expect(waitFor(path, undefined, { timeoutMs: 0 })).rejects.toThrow(/timeoutMs/);
  });
});

test('globs, regular expressions and functions exclude what they match, with everything below it', async () => {
  const root = temporaryDirectory();
  for (const path of ['keep/a', 'keep/b.tmp', 'cache/x/y', 'node_modules/m', 'keep/Z9', 'keep/Z10']) {
    write(join(root, path), path);
  }
  const ignore = ['**/*.tmp', /^node_modules$/, /Z\d+$/g, (path: string) => path === 'cache'];
  const { watcher, changes } = await start(root, { recursive: { ignore } });
  expect([...(watcher.current?.files.keys() ?? [])]).toEqual(['keep/a']);
  for (const path of ['cache/x/y', 'node_modules/m', 'keep/Z9', 'keep/Z10']) write(join(root, path), 'new');
  await watcher.check();
  expect(changes).toHaveLength(1);
  for (const wrong of ['*', [1], [''], [null]]) {
    expect(() => new ResilientWatcher(root, { recursive: { ignore: wrong as never } })).toThrow(TypeError);
  }
});

test.each<[string, () => unknown, string]>([
  ['returns a promise', () => Promise.resolve(false), 'it must return a boolean, got a promise'],
  ['fails like a call on the disk', () => statSync('/no/such/file'), 'ENOENT: no such file or directory'],
])('a function of ignore that %s is an error of a listener', async (_, ignored, message) => {
  const root = temporaryDirectory();
  write(join(root, 'a'), 'a');
  const watcher = new ResilientWatcher(root, { recursive: { ignore: [ignored as never] } });
  onTestFinished(() => watcher.close());
  const errors: Error[] = [];
  watcher.on('error', (error) => errors.push(error));
  await watcher.start();
  expect(errors[0]).toBeInstanceOf(ListenerError);
  expect(errors[0]?.message).toContain(`A listener of "ignore" failed: ${message}`);
});

test('after a restart the saved digests show exactly what changed meanwhile', async () => {
  const root = temporaryDirectory();
  for (const name of ['same', 'changed', 'removed']) write(join(root, name), name);
  const { watcher: first } = await start(root);
  const saved = JSON.parse(JSON.stringify(first.digests())) as Record<string, string>;
  expect(first.changedSince(saved)).toEqual({ added: [], changed: [], removed: [] });
  await first.close();
  write(join(root, 'same'), 'same');
  write(join(root, 'changed'), 'other');
  write(join(root, 'added'), 'added');
  rmSync(join(root, 'removed'));
  const { watcher: second } = await start(root);
  expect(second.changedSince(saved)).toEqual({
    added: ['added'],
    changed: ['changed'],
    removed: ['removed'],
  });
  expect(second.changedSince({})).toMatchObject({ added: ['added', 'changed', 'same'] });
  expect(() => second.changedSince(null as never)).toThrow(TypeError);
  expect(() => new ResilientWatcher(root).digests()).toThrow(/nothing has been reported yet/);
});
