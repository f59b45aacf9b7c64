/** `waitFor()`, groups that change while they are watched, patterns to ignore, and what changed since a saved state. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import fc from 'fast-check';
import { ResilientWatcher, waitFor, type Change, type ResilientWatcherOptions } from 'resilient-watcher';
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
      message: expect.stringMatching(/never" is not as expected after 60000 ms; it is/) as string,
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

  test('rejects with the error of the predicate, and for wrong arguments', async () => {
    const path = write(join(temporaryDirectory(), 'file'), '{');
    await expect(waitFor(path, ({ content }) => JSON.parse(String(content)) as boolean)).rejects.toThrow(
      SyntaxError,
    );
    await expect(waitFor(path, 'yes' as never)).rejects.toThrow(TypeError);
    await expect(waitFor(path, undefined, { timeoutMs: 0 })).rejects.toThrow(/timeoutMs/);
  });
});

describe('a group that changes while it is watched', () => {
  test('reports added and removed members, and then follows exactly its members', async () => {
    const root = temporaryDirectory();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => write(join(root, name), `${name}1`)) as [
      string,
      string,
      string,
    ];
    const { watcher, changes } = await start([a]);
    await watcher.add(b);
    expect(changes.at(-1)).toMatchObject({ added: [b], changed: [], removed: [] });
    await watcher.add(pathToFileURL(c));
    expect(watcher.path).toBe(`${a}, ${b}, ${c}`);
    await watcher.remove(a);
    expect(changes.at(-1)).toMatchObject({ added: [], changed: [], removed: [a] });
    writeFileSync(a, 'a2');
    writeFileSync(c, 'c2');
    await watcher.check();
    expect(changes.at(-1)).toMatchObject({ added: [], changed: [c], removed: [] });
    expect([...(await watcher.snapshot()).files].map(([key, { content }]) => [key, String(content)])).toEqual(
      [
        [b, 'b1'],
        [c, 'c2'],
      ],
    );
    expect(changes).toHaveLength(5);
  });

  test('after additions, removals, writes and checks in any order, the last report equals the disk', async () => {
    const root = temporaryDirectory();
    const names = ['a', 'b', 'c', 'd'];
    const pathOf = (name: string): string => join(root, name);
    const step = fc.tuple(fc.constantFrom('toggle', 'write', 'delete', 'check'), fc.constantFrom(...names));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        write(pathOf('anchor'), 'anchor');
        for (const name of names) rmSync(pathOf(name), { force: true });
        const { watcher } = await start([pathOf('anchor')]);
        const members = new Set<string>();
        const content = new Map<string, string>();
        let serial = 0;
        const pending: Promise<void>[] = [];
        for (const [action, name] of steps) {
          if (action === 'toggle' && members.delete(name)) pending.push(watcher.remove(pathOf(name)));
          else if (action === 'toggle') {
            members.add(name);
            pending.push(watcher.add(pathOf(name)));
          } else if (action === 'write') {
            content.set(name, String((serial += 1)));
            write(pathOf(name), content.get(name) ?? '');
          } else if (action === 'delete') {
            content.delete(name);
            rmSync(pathOf(name), { force: true });
          } else await watcher.check();
        }
        await Promise.all(pending);
        await watcher.check();
        const expected = [...members].flatMap((name) =>
          content.has(name) ? [[name, content.get(name)]] : [],
        );
        await expect
          .poll(async () => {
            await watcher.check();
            const files = [...(watcher.current?.files ?? [])].map(([key, file]) => [
              key.slice(root.length + 1),
              String(file.content),
            ]);
            return files.filter(([name]) => name !== 'anchor').sort();
          })
          .toEqual(expected.sort());
        await watcher.close();
      }),
      { numRuns: 40 },
    );
  });

  test('invalid additions and removals are refused', async () => {
    const root = temporaryDirectory();
    const [a, b] = [write(join(root, 'a'), 'a'), join(root, 'b')];
    const { watcher } = await start([a]);
    await expect(watcher.add(a)).rejects.toThrow(/in the group already/);
    await expect(watcher.remove(b)).rejects.toThrow(/not in the group/);
    await expect(watcher.remove(a)).rejects.toThrow(/the last one/);
    await expect(watcher.add('')).rejects.toThrow(TypeError);
    const { watcher: single } = await start(a);
    await expect(single.add(b)).rejects.toThrow(/is not a group/);
    await watcher.close();
    await expect(watcher.add(b)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
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
