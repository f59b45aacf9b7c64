/** `add()` and `remove()`: groups and trees that change while they are watched. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import fc from 'fast-check';
import { ResilientWatcher, type Change, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

interface Started {
  readonly watcher: ResilientWatcher;
  readonly changes: Change[];
  readonly backend: ScriptedBackend;
  readonly clock: FakeClock;
}

/** A watcher with the default delays, in a time that passes only when the test says so. */
async function start(path: string | string[], options: ResilientWatcherOptions = {}): Promise<Started> {
  const [backend, clock] = [new ScriptedBackend(), new FakeClock()];
  const watcher = new ResilientWatcher(path, { backend, clock, ...options });
  onTestFinished(() => watcher.close());
  const changes: Change[] = [];
  // In no order.
  watcher.on('change', (change) => {
    changes.push({ ...change, added: [...change.added].sort(), removed: [...change.removed].sort() });
  });
  await watcher.start();
  return { watcher, changes, backend, clock };
}

/** A tree of files, each of which holds its own key. */
async function startTree(
  keys: readonly string[],
  options: ResilientWatcherOptions = { recursive: true },
): Promise<Started & { readonly root: string }> {
  const root = join(temporaryDirectory(), 'root');
  mkdirSync(root);
  for (const key of keys) write(join(root, key), key);
  return { root, ...(await start(root, options)) };
}

function keysOf(watcher: ResilientWatcher): string[] {
  return [...(watcher.current?.files.keys() ?? [])].sort();
}

describe('a group that changes while it is watched', () => {
  test('reports added and removed members, and then follows exactly its members', async () => {
    const root = temporaryDirectory();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => write(join(root, name), `${name}1`)) as [
      string,
      string,
      string,
    ];
    const { watcher, changes, clock } = await start([a]);
    await watcher.add(b);
    expect(changes.at(-1)).toMatchObject({ added: [b], changed: [], removed: [] });
    await watcher.add(pathToFileURL(c));
    expect(watcher.path).toBe(`${a}, ${b}, ${c}`);
    await watcher.remove(a);
    expect(changes.at(-1)).toMatchObject({ added: [], changed: [], removed: [a] });
    writeFileSync(a, 'a2');
    writeFileSync(c, 'c2');
    await watcher.check();
    await clock.advance(60);
    await watcher.idle();
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
        const { watcher } = await start([pathOf('anchor')], { settleMs: 0, missingGraceMs: 0 });
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
      { numRuns: rounds(15, 40) },
    );
  });

  test('a member that is gone when it is removed, and the last one that exists', async () => {
    const root = temporaryDirectory();
    const [a, b, c] = [write(join(root, 'a'), 'a'), write(join(root, 'b'), 'b'), join(root, 'c')];
    const { watcher, changes } = await start([a, b, c]);
    rmSync(b);
    await watcher.check();
    // That it is gone waits for the grace, that it was removed does not.
    expect(changes).toHaveLength(1);
    await watcher.remove(b);
    expect(changes.at(-1)).toMatchObject({ removed: [b], current: { kind: 'group' } });
    await watcher.remove(a);
    expect(changes.at(-1)).toMatchObject({ removed: [a], current: { kind: 'missing' } });
    expect(changes).toHaveLength(3);
  });

  test.each(['a file', 'what a link leads to', 'a key of a volume'])(
    'the removal of the only other member does not delay that a member is gone: %s',
    async (what) => {
      const root = temporaryDirectory();
      const [file, b] = [write(join(root, 'a'), 'a'), write(join(root, 'b'), 'b')];
      const volume = new KubeletVolume(join(root, 'volume'));
      volume.publish({ key: '1' });
      symlinkSync('a', join(root, 'link'));
      const key = volume.path('key');
      const a = { 'a file': file, 'what a link leads to': join(root, 'link'), 'a key of a volume': key }[
        what
      ];
      const { watcher, changes, clock } = await start([String(a), b]);
      if (a === key) volume.publish({ other: '2' });
      else rmSync(file);
      await watcher.check();
      await clock.advance(400);
      await watcher.remove(b);
      expect(changes.at(-1)).toMatchObject({ removed: [b], current: { kind: 'group' } });
      await clock.advance(110);
      await watcher.idle();
      expect(changes.at(-1)).toMatchObject({ removed: [a], current: { kind: 'missing' } });
    },
  );

  test('a directory is added, and is the file that it should be before it is told as unreadable', async () => {
    const root = temporaryDirectory();
    const [a, b] = [join(root, 'a'), join(root, 'b')];
    const { watcher, changes, clock } = await start([a]);
    mkdirSync(b);
    const added = watcher.add(b);
    const toldWhenAdded = added.then(() => changes.at(-1)?.added);
    const { checks } = watcher.status();
    await vi.waitUntil(() => watcher.status().checks > checks);
    rmSync(b, { recursive: true });
    write(b, 'text');
    await watcher.check();
    await clock.advance(60);
    await watcher.idle();
    expect(await toldWhenAdded).toEqual([b]);
  });

  test('what other members are does not delay a removal, and an added member is of their instant', async () => {
    const root = temporaryDirectory();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => write(join(root, name), `${name}1`)) as [
      string,
      string,
      string,
    ];
    const { watcher, changes, clock } = await start([a, b]);
    write(b, 'b2');
    await watcher.remove(a);
    expect(changes.at(-1)).toMatchObject({ added: [], changed: [], removed: [a] });
    expect(String(changes.at(-1)?.current.files.get(b)?.content)).toBe('b1');
    const added = watcher.add(c);
    await watcher.idle();
    expect(changes).toHaveLength(2);
    await clock.advance(60);
    await added;
    expect(changes.at(-1)).toMatchObject({ added: [c], changed: [b], removed: [] });
  });

  test('while another member cannot be read, an addition waits for the report of that, or of the added file', async () => {
    const root = temporaryDirectory();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => write(join(root, name), name)) as [
      string,
      string,
      string,
    ];
    let isDenied = false;
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        if (isDenied && name === 'lstat' && path === a) throw errno('EACCES', a);
      },
    });
    const { watcher, backend, clock } = await start([a], { fs, resyncIntervalMs: 0 });
    const unreadable: string[] = [];
    watcher.on('unreadable', ({ error }) => unreadable.push(error.code));
    /** The keys when the call has resolved. */
    const added = async (path: string): Promise<{ call: Promise<string[]>; isDone: () => boolean }> => {
      let isDone = false;
      const call = watcher.add(path).then(() => {
        isDone = true;
        return keysOf(watcher);
      });
      await watcher.idle();
      return { call, isDone: () => isDone };
    };
    isDenied = true;
    const first = await added(b);
    expect(first.isDone()).toBe(false);
    isDenied = false;
    backend.hint();
    expect([await first.call, unreadable]).toEqual([[a, b], []]);
    isDenied = true;
    const second = await added(c);
    expect(second.isDone()).toBe(false);
    await clock.advance(1_000);
    expect([await second.call, unreadable]).toEqual([[a, b], ['ERR_TARGET_ACCESS']]);
    isDenied = false;
    backend.hint();
    await watcher.idle();
    expect(keysOf(watcher)).toEqual([a, b, c]);
  });

  test('invalid additions and removals are refused', async () => {
    const root = temporaryDirectory();
    const [a, b] = [write(join(root, 'a'), 'a'), join(root, 'b')];
    const { watcher } = await start([a]);
    await expect(watcher.add(a)).rejects.toThrow(/already in the group/);
    await expect(watcher.remove(b)).rejects.toThrow(/not in the group/);
    await expect(watcher.remove(a)).rejects.toThrow(/the last file/);
    await expect(watcher.add('')).rejects.toThrow(TypeError);
    const { watcher: single } = await start(a);
    await expect(single.add(b)).rejects.toThrow(/neither a group nor a tree/);
    await watcher.close();
    await expect(watcher.add(b)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });
});

test('a relative path is its key, and stands for one file only', async () => {
  const [one, two] = [temporaryDirectory(), temporaryDirectory()];
  for (const directory of [one, two]) write(join(directory, 'a'), directory);
  const { watcher } = await start([write(join(one, 'b'), 'b')]);
  const before = process.cwd();
  onTestFinished(() => process.chdir(before));
  process.chdir(one);
  await watcher.add('a');
  process.chdir(two);
  const refused = watcher.add('a');
  await expect(refused).rejects.toThrow(/another file with the key "a"; pass the absolute path/);
  expect(String(watcher.current?.files.get('a')?.content)).toBe(one);
  expect(watcher.current?.files.size).toBe(2);
});

describe('a tree that changes while it is watched', () => {
  const KEYS = ['a/b/1', 'a/b/2', 'a/c/3', 'd/4', 'e'];

  test('what is removed is left out at once and in one change, and comes back when it is added', async () => {
    const { watcher, changes, root } = await startTree(KEYS);
    const { backend } = watcher.status();
    expect(backend).toBe('scripted');
    await watcher.remove('a');
    expect(changes.slice(1)).toMatchObject([
      { added: [], changed: [], removed: ['a/b/1', 'a/b/2', 'a/c/3'], cause: 'check' },
    ]);
    const { watchedDirectories } = watcher.status();
    expect(watchedDirectories).toContain(join(root, 'd'));
    for (const path of ['a', 'a/b', 'a/c']) expect(watchedDirectories).not.toContain(join(root, path));
    write(join(root, 'a/b/1'), 'other');
    write(join(root, 'a/new'), 'new');
    rmSync(join(root, 'a/c'), { recursive: true });
    await watcher.check();
    expect(changes).toHaveLength(2);
    await watcher.add('a');
    expect(changes.slice(2)).toMatchObject([{ added: ['a/b/1', 'a/b/2', 'a/new'], removed: [] }]);
    expect(String(watcher.current?.files.get('a/b/1')?.content)).toBe('other');
    expect(watcher.status().watchedDirectories).toContain(join(root, 'a/b'));
    expect(keysOf(watcher)).toEqual(['a/b/1', 'a/b/2', 'a/new', 'd/4', 'e']);
  });

  test.each([
    { calls: ['- a/b'], keys: ['a/c/3', 'd/4', 'e'] },
    { calls: ['- a/b/1', '- e'], keys: ['a/b/2', 'a/c/3', 'd/4'] },
    { calls: ['- a', '+ a/b'], keys: ['a/b/1', 'a/b/2', 'd/4', 'e'] },
    { calls: ['- a', '+ a/b/2'], keys: ['a/b/2', 'd/4', 'e'] },
    { calls: ['- a', '+ a/b', '- a/b/1'], keys: ['a/b/2', 'd/4', 'e'] },
    { calls: ['- a', '+ a/b', '- a'], keys: ['d/4', 'e'] },
    { calls: ['- a', '+ a/b', '- a', '+ a'], keys: KEYS },
    { calls: ['- a/b', '- a', '+ a'], keys: KEYS },
    { calls: ['- a/b', '+ a'], keys: KEYS },
    { calls: ['- a', '- d', '+ .'], keys: KEYS },
    { calls: ['- ./a/', '- d/../e'], keys: ['d/4'] },
    { calls: ['- not/yet', '- later'], keys: KEYS },
  ])('the last call about a path or a directory above it decides: $calls', async ({ calls, keys }) => {
    const { watcher, root, clock } = await startTree(KEYS);
    for (const each of calls) {
      const path = each.slice(2);
      await (each.startsWith('-') ? watcher.remove(path) : watcher.add(path));
    }
    write(join(root, 'not/yet/5'), '5');
    write(join(root, 'later'), 'later');
    const later = calls.some((each) => each.includes('later')) ? [] : ['later', 'not/yet/5'];
    await watcher.check();
    await clock.advance(60);
    await watcher.idle();
    expect(keysOf(watcher)).toEqual([...keys, ...later].sort());
    const { files } = await watcher.snapshot();
    expect([...files.keys()].sort()).toEqual([...keys, ...later].sort());
  });

  test('absolute paths, URLs, and a watcher that has not been started', async () => {
    const root = temporaryDirectory();
    for (const key of KEYS) write(join(root, key), key);
    const watcher = new ResilientWatcher(root, { recursive: true, backend: new ScriptedBackend() });
    onTestFinished(() => watcher.close());
    await watcher.remove(join(root, 'a/b'));
    await watcher.remove(pathToFileURL(join(root, 'd/')));
    await watcher.start();
    expect(keysOf(watcher)).toEqual(['a/c/3', 'e']);
    await watcher.add(pathToFileURL(join(root, 'd')));
    expect(keysOf(watcher)).toEqual(['a/c/3', 'd/4', 'e']);
    // A name with a star is one as a URL only.
    write(join(root, '*'), '*');
    await watcher.remove(pathToFileURL(join(root, '*')));
    await watcher.check();
    expect(keysOf(watcher)).toEqual(['a/c/3', 'd/4', 'e']);
  });

  test.each(['volume/d', 'volume/d/d'])('a directory inside a volume: %s', async (removed) => {
    const root = temporaryDirectory();
    const volume = new KubeletVolume(join(root, 'volume'));
    volume.publish({ key: '1', 'd/key': '1', 'd/d/key': '1' });
    const { watcher, backend } = await start(root, { recursive: { ignore: ['**/ignored'] } });
    await watcher.remove(removed);
    const left = ['volume/d/d/key', 'volume/d/key', 'volume/key'].filter(
      (key) => !key.startsWith(`${removed}/`),
    );
    expect(keysOf(watcher)).toEqual(left);
    volume.publish({ key: '2', 'd/key': '2', 'd/d/key': '2', 'd/ignored/key': '2' });
    backend.hint();
    await watcher.check();
    expect(keysOf(watcher)).toEqual(left);
    await watcher.add('volume/d/d');
    expect(keysOf(watcher)).toContain('volume/d/d/key');
  });

  test('links, keys of a volume, and what links lead to', async () => {
    const root = temporaryDirectory();
    const elsewhere = temporaryDirectory();
    write(join(elsewhere, 'x/1'), '1');
    write(join(elsewhere, 'y/2'), '2');
    write(join(root, 'own/file'), 'file');
    symlinkSync(elsewhere, join(root, 'link'));
    symlinkSync(join(root, 'own/file'), join(root, 'to-file'));
    const volume = new KubeletVolume(join(root, 'volume'));
    volume.publish({ key: '1', other: '1' });
    const { watcher, backend, clock } = await start(root, { recursive: { followLinks: true } });
    await watcher.remove('link/x');
    await watcher.remove('volume/key');
    await watcher.remove('own');
    expect(keysOf(watcher)).toEqual(['link/y/2', 'to-file', 'volume/other']);
    volume.publish({ key: '2', other: '2' });
    write(join(elsewhere, 'x/1'), 'other');
    // It is read through the link, so its directory is watched for that.
    expect(watcher.status().watchedDirectories).toContain(join(root, 'own'));
    renameSync(write(join(root, 'next'), 'second'), join(root, 'own/file'));
    backend.hint(join(root, 'own/file'));
    await watcher.check();
    await clock.advance(60);
    await watcher.idle();
    expect(keysOf(watcher)).toEqual(['link/y/2', 'to-file', 'volume/other']);
    expect(String(watcher.current?.files.get('to-file')?.content)).toBe('second');
    expect(String(watcher.current?.files.get('volume/other')?.content)).toBe('2');
    await watcher.add('volume/key');
    expect(String(watcher.current?.files.get('volume/key')?.content)).toBe('2');
  });

  test('what is gone waits for its grace, unless it is removed meanwhile', async () => {
    const { watcher, changes, root } = await startTree(KEYS);
    rmSync(join(root, 'a'), { recursive: true });
    rmSync(join(root, 'e'));
    await watcher.check();
    expect(changes).toHaveLength(1);
    await watcher.remove('a');
    expect(changes.slice(1)).toMatchObject([{ removed: ['a/b/1', 'a/b/2', 'a/c/3'] }]);
  });

  test('what cannot be read any more is removed with what was known of it', async () => {
    const closed = new Set<unknown>();
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        if (name === 'readdir' && closed.has(path)) throw errno('EACCES', String(path));
      },
    });
    const { watcher, changes, root, clock, backend } = await startTree(KEYS, { recursive: true, fs });
    const readable: unknown[] = [];
    watcher.on('readable', (event) => readable.push(event));
    closed.add(join(root, 'a'));
    await watcher.check();
    await clock.advance(600);
    await watcher.idle();
    expect(watcher.status().target).toBe('unreadable');
    await watcher.remove('a/b');
    expect(changes.slice(1)).toMatchObject([{ removed: ['a/b/1', 'a/b/2'] }]);
    expect(readable).toHaveLength(0);
    await watcher.remove('a');
    expect(changes.slice(2)).toMatchObject([{ removed: ['a/c/3'] }]);
    expect(readable).toHaveLength(1);
    backend.hint();
    await watcher.idle();
    expect(keysOf(watcher)).toEqual(['d/4', 'e']);
  });

  test('what a call has changed is told at once, also if its look fails and a resync finds it', async () => {
    let isFailing = false;
    const fs = fsWith({
      each: ({ name, args: [path] }) => {
        if (isFailing && name === 'lstat' && path === root) throw errno('EIO', root);
      },
    });
    const options = { recursive: true, fs, resyncIntervalMs: 100 };
    const { watcher, changes, root, clock } = await startTree(KEYS, options);
    for (const [what, keys] of [
      ['remove', { added: [], removed: ['a/b/1', 'a/b/2', 'a/c/3'] }],
      ['add', { added: ['a/b/1', 'a/b/2', 'a/c/3'], removed: [] }],
    ] as const) {
      isFailing = true;
      const { checks } = watcher.status();
      const call = watcher[what]('a');
      await vi.waitUntil(() => watcher.status().checks > checks);
      isFailing = false;
      await clock.advance(100);
      await call;
      expect(changes.splice(1)).toMatchObject([keys]);
    }
  });

  test('what cannot be meant is refused, and changes nothing', async () => {
    const { watcher, changes, root } = await startTree([...KEYS, 'cache/x'], {
      recursive: { ignore: ['**/cache', (path) => path === 'd'] },
    });
    for (const path of ['/elsewhere', '..', '../sibling', dirname(root), `${root}-not`]) {
      await expect(watcher.remove(path)).rejects.toThrow(/is not below .*use another watcher/);
      await expect(watcher.add(path)).rejects.toThrow(TypeError);
    }
    for (const path of ['.', root, pathToFileURL(root)]) {
      await expect(watcher.remove(path)).rejects.toThrow(/is the root of the tree; close the watcher/);
    }
    await expect(watcher.add('a')).rejects.toThrow(/is already in the tree/);
    await expect(watcher.add('.')).rejects.toThrow(/is already in the tree/);
    await expect(watcher.remove('cache/x')).rejects.toThrow(/option "ignore"/);
    await expect(watcher.add('cache')).rejects.toThrow(/option "ignore"/);
    await expect(watcher.add('d/4')).rejects.toThrow(/option "ignore"/);
    await watcher.remove('a');
    await expect(watcher.remove('a')).rejects.toThrow(/is not in the tree/);
    await expect(watcher.remove('a/b')).rejects.toThrow(/is not in the tree/);
    for (const path of ['', 'a\0b', '*.tmp', 7 as never]) {
      await expect(watcher.remove(path)).rejects.toThrow(TypeError);
      await expect(watcher.add(path)).rejects.toThrow(TypeError);
    }
    await expect(watcher.remove('**/*.tmp')).rejects.toThrow(/"ignore"/);
    expect(changes).toHaveLength(2);
    expect(keysOf(watcher)).toEqual(['e']);
  });

  const HINTED_WHILE_REMOVED = [
    { do: 'remove' as const, name: 'a' },
    { do: 'hint' as const, name: 'a/a' },
    { do: 'link' as const, name: 'a' },
  ];
  const LINKED_FIRST = [
    { do: 'link' as const, name: 'volume' },
    { do: 'publish' as const, name: 'a' },
    { do: 'hint' as const, name: 'link' },
  ];

  test('whatever is added, removed, written and hinted, the last report is the disk without what is removed', async () => {
    const names = ['a', 'b', 'a/a', 'a/b', 'b/a', 'a/a/a', 'link', 'volume', 'volume/key', 'volume/a'];
    const name = fc.constantFrom(...names);
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('add' as const, 'remove' as const), name }),
      fc.record({ do: fc.constantFrom('write' as const, 'replace' as const, 'delete' as const), name }),
      fc.record({ do: fc.constantFrom('link' as const, 'hint' as const), name }),
      fc.record({
        do: fc.constantFrom('publish' as const, 'check' as const, 'time' as const, 'resync' as const),
        name,
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.boolean(), async (steps, followLinks) => {
        const root = join(temporaryDirectory(), 'root');
        for (const key of ['a/a/a', 'b/a', 'a/b']) write(join(root, key), 'first');
        const backend = new ScriptedBackend();
        const { watcher, clock } = await start(root, { backend, recursive: { followLinks } });
        const pending: Promise<unknown>[] = [];
        // What the calls say, the last first.
        const said: { readonly name: string; readonly isIn: boolean }[] = [];
        let serial = 0;
        for (const { do: what, name } of steps) {
          const path = join(root, name);
          const text = String((serial += 1));
          try {
            if (what === 'write') write(path, text);
            else if (what === 'replace') renameSync(write(join(dirname(root), 'next'), text), path);
            else if (what === 'delete') rmSync(path, { recursive: true });
            else if (what === 'link') symlinkSync(path, join(root, 'link'));
            else if (what === 'publish')
              new KubeletVolume(join(root, 'volume')).publish({ key: text, 'a/key': text });
            else if (what === 'hint') backend.hint(path);
            else if (what === 'check') await watcher.check();
            else if (what === 'time') await clock.advance(100);
            else if (what === 'resync') await clock.advance(5_000);
            else {
              const call = watcher[what](name);
              // Refused where it would change nothing.
              said.unshift({ name, isIn: what === 'add' });
              pending.push(call.catch(() => undefined));
            }
          } catch (error) {
            expect((error as { code?: string }).code).toBeDefined();
          }
        }
        await watcher.check();
        for (let wait = 0; wait < 12; wait += 1) {
          await clock.advance(100);
          await watcher.idle();
        }
        await Promise.all(pending);
        const last = watcher.current;
        const whole = new ResilientWatcher(root, { recursive: { followLinks } });
        for (const { name, isIn } of [...said].reverse())
          await whole[isIn ? 'add' : 'remove'](name).catch(() => undefined);
        const disk = await whole.snapshot();
        const shown = (files: Change['current']['files']): string[] =>
          [...files].map(([key, { content }]) => `${key}: ${String(content)}`).sort();
        expect(last && shown(last.files)).toEqual(shown(disk.files));
        const isIn = (key: string): boolean =>
          said.find(({ name }) => key === name || key.startsWith(`${name}/`))?.isIn ?? true;
        expect([...disk.files.keys()].filter((key) => !isIn(key))).toEqual([]);
        if (!followLinks) {
          const all = await new ResilientWatcher(root, { recursive: true }).snapshot();
          expect(shown(disk.files)).toEqual(shown(new Map([...all.files].filter(([key]) => isIn(key)))));
        }
        await watcher.close();
      }),
      {
        numRuns: rounds(10, 400),
        examples: [
          [HINTED_WHILE_REMOVED, true],
          [LINKED_FIRST, true],
        ],
      },
    );
  });
});
