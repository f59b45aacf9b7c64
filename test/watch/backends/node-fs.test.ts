import { EventEmitter } from 'node:events';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  renameSync,
  statSync,
  watch,
  writeFileSync,
  type FSWatcher,
  type WatchOptions,
} from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { pathForCall } from '../../../src/core/ports/platform-path.js';
import type { WatchedDirectory } from '../../../src/core/ports/watch-backend.js';
import { nodeFsBackend } from '../../../src/watch/backends/node-fs.js';
import { errno } from '../../support/errno.js';
import { spend } from '../../support/intercepted-fs.js';
import { inotifyWatches } from '../../support/inotify.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { conforms, conformsForTrees, directoryAt, subscribe, type Candidate } from './conformance.js';

const candidate = (): Candidate => ({ backend: nodeFsBackend(), native: true });

conforms(candidate);
conformsForTrees(candidate);

test('a watch that may be dead is opened again although the directory is the same', async () => {
  const directory = temporaryDirectory();
  const { subscription, hinted } = await subscribe(candidate());
  const setDirectories = [directoryAt(directory)];
  await subscription.setDirectories(setDirectories);
  const hint = hinted();
  renameSync(directory, `${directory}.away`);
  await hint;
  const look = async (): Promise<unknown> => subscription.setDirectories(setDirectories);
  // One in between fails, where the watch has ended by then.
  await look().catch(() => undefined);
  renameSync(`${directory}.away`, directory);
  expect(await subscription.setDirectories(setDirectories)).not.toEqual([]);
  expect(await subscription.setDirectories(setDirectories)).toEqual([]);
});

test('a directory whose path is as long as a path can be is watched without anything after it', async () => {
  const directory = temporaryDirectory();
  const native = ((path: string, options: object) => {
    if (path.endsWith('/.')) throw errno('ENAMETOOLONG', path);
    return watch(path, options);
  }) as typeof watch;
  const { subscription, hinted } = await subscribe({ backend: nodeFsBackend(native), native: true });
  expect(await subscription.setDirectories([directoryAt(directory)])).toEqual([directory]);
  const written = hinted();
  writeFileSync(join(directory, 'entry'), '');
  await written;
});

test('chmod and chown of the directory, as kubelet does before a swap, are a hint and keep the watch', async () => {
  const directory = temporaryDirectory();
  const { subscription, hinted } = await subscribe(candidate());
  const directories = [directoryAt(directory)];
  await subscription.setDirectories(directories);
  const { uid, gid } = statSync(directory);
  const watches = inotifyWatches();
  for (const touch of [() => chmodSync(directory, 0o750), () => chownSync(directory, uid, gid)]) {
    const hint = hinted();
    touch();
    await hint;
    expect(subscription.setDirectories([...directories])).toEqual([]);
    expect(inotifyWatches()).toBe(watches);
  }
  const written = hinted();
  writeFileSync(join(directory, 'entry'), '');
  await written;
});

test('a watch is opened again when another directory is at its path, and its other subscribers are notified', async () => {
  const directory = temporaryDirectory();
  const first = await subscribe(candidate());
  const second = await subscribe(candidate());
  await first.subscription.setDirectories([directoryAt(directory)]);
  await second.subscription.setDirectories([directoryAt(directory)]);
  const nextHint = first.hinted();
  expect(await second.subscription.setDirectories([{ path: directory, identity: 'another' }])).not.toEqual(
    [],
  );
  await nextHint;
});

test('a watch that ended is new to each of its subscribers, whichever of them opens it again', async () => {
  const directory = temporaryDirectory();
  const shared = [await subscribe(candidate()), await subscribe(candidate())];
  const setDirectories = [directoryAt(directory)];
  for (const { subscription } of shared) await subscription.setDirectories(setDirectories);
  const hints = shared.map(({ hinted }) => hinted());
  renameSync(directory, `${directory}.away`);
  await Promise.all(hints);
  renameSync(`${directory}.away`, directory);
  for (const { subscription } of shared)
    expect(await subscription.setDirectories(setDirectories)).toEqual([directory]);
  for (const { subscription } of shared)
    expect(await subscription.setDirectories(setDirectories)).toEqual([]);
});

test('joining an open watch counts as new, since its earlier events went to others', async () => {
  const directory = temporaryDirectory();
  const first = await subscribe(candidate());
  const second = await subscribe(candidate());
  expect(await first.subscription.setDirectories([directoryAt(directory)])).not.toEqual([]);
  expect(await second.subscription.setDirectories([directoryAt(directory)])).not.toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'each subscriber gets hints about the entries that it wants now, whatever others want and wanted before',
  async () => {
    const directory = temporaryDirectory();
    const elsewhere = temporaryDirectory();
    const entries = ['a', 'b', 'c'];
    const subscribers = await Promise.all(Array.from({ length: 3 }, () => subscribe(candidate())));
    /** The entries that each of them wants; undefined: all, empty: not even the directory. */
    const rounds = [
      [['a'], ['a', 'b'], ['b']],
      [['a'], ['b'], ['c']],
      [undefined, ['b'], ['c']],
      [['c'], [], undefined],
      [['c'], ['b'], []],
      [[], ['a'], ['a']],
    ];
    for (const [round, wanted] of rounds.entries()) {
      const heardBefore = subscribers.map(({ paths }) => paths.length);
      for (const [index, { subscription }] of subscribers.entries()) {
        const names = wanted[index];
        const own = names?.length === 0 ? [] : [directoryAt(directory, names)];
        await subscription.setDirectories([...own, directoryAt(elsewhere)]);
      }
      for (const entry of entries) writeFileSync(join(directory, entry), '');
      // The kernel reports it to everybody after the others.
      const last = join(elsewhere, String(round));
      writeFileSync(last, '');
      for (const { paths, hinted } of subscribers) while (!paths.includes(last)) await hinted();
      const heard = subscribers.map(({ paths }, index) => {
        const about = paths.slice(heardBefore[index]).filter((path) => path?.startsWith(`${directory}/`));
        return new Set(about.map((path) => path?.slice(directory.length + 1)));
      });
      expect(heard).toEqual(wanted.map((names) => new Set(names ?? entries)));
    }
  },
);

test.runIf(process.platform === 'linux')(
  'directories whose names are not UTF-8 are watched, and hints about such names are about their directory',
  async () => {
    const root = temporaryDirectory();
    const odd = join(root, '\udcff');
    mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff)]));
    const { dev, ino, birthtimeNs } = lstatSync(pathForCall(odd), { bigint: true });
    const { subscription, hinted, paths } = await subscribe(candidate());
    await subscription.setDirectories([
      directoryAt(root, ['\udcff']),
      { path: odd, identity: `${dev}:${ino}:${birthtimeNs}` },
    ]);
    const hint = hinted();
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff, 0x2f, 0xfe)]), '');
    await hint;
    const next = hinted();
    renameSync(pathForCall(odd), join(root, 'other'));
    await next;
    expect(new Set(paths)).toEqual(new Set([odd, root]));
  },
);

test('a watch that is opened again stays open if those who are notified leave at once', async () => {
  const directory = temporaryDirectory();
  const backend = nodeFsBackend();
  const down = (): void => undefined;
  const leaving = await backend.subscribe(
    { hint: () => void leaving.setDirectories([]), down },
    { persistent: false },
  );
  await leaving.setDirectories([directoryAt(directory)]);
  const { subscription, hinted } = await subscribe(candidate());
  await subscription.setDirectories([{ path: directory, identity: 'another' }]);
  const hint = hinted();
  writeFileSync(join(directory, 'entry'), '');
  await hint;
});

/** Native watches that report only what a test says, in the order in which they are opened. */
function nativeWatches(): {
  readonly open: (path: unknown, options?: WatchOptions) => FSWatcher;
  readonly opened: [path: string, native: FSWatcher][];
  /** Those that keep the process alive. */
  readonly referenced: ReadonlySet<FSWatcher>;
} {
  const opened: [string, FSWatcher][] = [];
  const referenced = new Set<FSWatcher>();
  const open = (path: unknown, { persistent = true }: WatchOptions = {}): FSWatcher => {
    const native = Object.assign(new EventEmitter(), {
      close: () => void referenced.delete(native),
      ref: () => {
        referenced.add(native);
        return native;
      },
      unref: () => {
        referenced.delete(native);
        return native;
      },
    }) as FSWatcher;
    opened.push([String(path), native]);
    if (persistent) referenced.add(native);
    return native;
  };
  return { open, opened, referenced };
}

/** The same, of which some dozen take more than a look may take of one turn. */
function slowWatches(): ReturnType<typeof nativeWatches> {
  const { open, ...watches } = nativeWatches();
  const slow: typeof open = (path, options) => {
    spend(1);
    return open(path, options);
  };
  return { open: slow, ...watches };
}

test('who may not watch a directory takes nothing from those who do, whose watch keeps the process alive', async () => {
  const { open, referenced } = nativeWatches();
  let isDenied = false;
  const ancestor = { path: temporaryDirectory(), entries: ['a'], isAncestor: true };
  const native = (path: unknown): FSWatcher => {
    if (isDenied && String(path).startsWith(ancestor.path)) throw errno('EACCES', String(path));
    return open(path);
  };
  const backend = nodeFsBackend(native, false);
  const [first, second] = [
    await subscribe({ backend, native: true }),
    await subscribe({ backend, native: true }),
  ];
  const own = directoryAt(temporaryDirectory());
  await second.subscription.setDirectories([own]);
  await first.subscription.setDirectories([{ ...ancestor, identity: 'one' }]);
  isDenied = true;
  for (let times = 0; times < 2; times += 1) {
    const directories = [{ ...ancestor, identity: 'another' }, own];
    expect(await second.subscription.setDirectories(directories)).toEqual([]);
    expect(referenced.size).toBe(2);
  }
  await first.subscription.close();
  expect(referenced.size).toBe(1);
  await second.subscription.close();
  expect(referenced.size).toBe(0);
});

test('a watch that is shared keeps the process alive while one who wants that listens', async () => {
  const { open, opened, referenced } = nativeWatches();
  const backend = nodeFsBackend(open, false);
  const directory = temporaryDirectory();
  const touch = (): unknown => opened.at(-1)?.[1].emit('change', 'rename', '.');
  const sink = { hint: (): void => undefined, down: (): void => undefined };
  const other = await backend.subscribe(sink, { persistent: false });
  await other.setDirectories([directoryAt(directory)]);
  expect(referenced.size).toBe(0);
  const { subscription } = await subscribe({ backend, native: true });
  for (const entries of [['a'], ['a', 'b']]) {
    await subscription.setDirectories([directoryAt(directory, entries)]);
    expect(referenced.size).toBe(1);
  }
  touch();
  expect(referenced.size).toBe(1);
  await other.close();
  expect(referenced.size).toBe(1);
  await other.setDirectories([directoryAt(directory)]);
  await subscription.close();
  expect(referenced.size).toBe(0);
  touch();
  expect(referenced.size).toBe(0);
});

test('what is closed while it opens many watches opens no more, and leaves none behind', async () => {
  const { open, opened, referenced } = slowWatches();
  const { subscription } = await subscribe({ backend: nodeFsBackend(open, false), native: true });
  const directories = Array.from({ length: 50 }, (_, at) => ({ path: `/srv/${at}`, identity: `${at}` }));
  const opening = subscription.setDirectories(directories);
  await subscription.close();
  await opening;
  expect(opened.length).toBeLessThan(directories.length);
  expect(referenced.size).toBe(0);
});

test('who may not watch a directory polls, unless it is an ancestor: that is tried again at each look', async () => {
  const { open, opened } = nativeWatches();
  const directory = { ...directoryAt(temporaryDirectory()), entries: ['a'] };
  const own = directoryAt(temporaryDirectory());
  let isDenied = true;
  const native = (path: unknown, options?: WatchOptions): FSWatcher => {
    if (isDenied && String(path).startsWith(directory.path)) throw errno('EACCES', String(path));
    return open(path, options);
  };
  const { subscription } = await subscribe({ backend: nodeFsBackend(native, false), native: true });
  const set = async (...directories: WatchedDirectory[]): Promise<unknown> =>
    subscription.setDirectories(directories);
  const failure = { code: 'ERR_BACKEND_DOWN' };
  await expect(set(directory)).rejects.toMatchObject(failure);
  const ancestor = { ...directory, isAncestor: true };
  // Nothing would be heard.
  await expect(set(ancestor)).rejects.toMatchObject(failure);
  expect(await set(ancestor, own)).toEqual([own.path]);
  isDenied = false;
  await set(ancestor, own);
  expect(opened).toHaveLength(2);
});

test('a directory that is removed on Windows, which is an EPERM of its watch, is a hint and opened again', async () => {
  const { open, opened } = nativeWatches();
  const directory = temporaryDirectory();
  const { subscription, hinted } = await subscribe({ backend: nodeFsBackend(open), native: true });
  const directories = [directoryAt(directory)];
  await subscription.setDirectories(directories);
  const hint = hinted();
  opened[0]?.[1].emit(
    'error',
    Object.assign(new Error('EPERM: operation not permitted, watch'), { code: 'EPERM' }),
  );
  await hint;
  expect(await subscription.setDirectories(directories)).toEqual([directory]);
  expect(opened).toHaveLength(2);
});

test('on macOS, where a watch hears of everything below its directory, no ancestor is watched, and never the root', async () => {
  const { open, opened } = nativeWatches();
  const directory = temporaryDirectory();
  const { subscription } = await subscribe({ backend: nodeFsBackend(open, true), native: true });
  await subscription.setDirectories([
    { path: '/', identity: '1', entries: ['tmp'] },
    { path: '/Users', identity: '2', entries: ['me'], isAncestor: true },
    { ...directoryAt(directory), entries: ['app.yaml'] },
  ]);
  expect(opened.map(([path]) => path)).toEqual([`${directory}/.`]);
});

test('on macOS, all directories of a look are opened in one turn, since each start of the stream may lose events', async () => {
  const directories = Array.from({ length: 20 }, (_, at) => ({ path: `/Users/me/${at}`, identity: `${at}` }));
  // Native watches are shared by function, so each backend has one of its own.
  const { open, opened } = slowWatches();
  const mac = await subscribe({ backend: nodeFsBackend(open, true), native: true });
  expect(mac.subscription.setDirectories(directories)).toEqual(directories.map(({ path }) => path));
  expect(opened).toHaveLength(20);
  const linux = await subscribe({ backend: nodeFsBackend(slowWatches().open, false), native: true });
  expect(linux.subscription.setDirectories(directories)).toBeInstanceOf(Promise);
});
