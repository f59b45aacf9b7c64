import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  type BigIntStats,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type Change, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { nodeFileSystem } from '../../src/core/file-system.js';
import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

type Kind = 'scripted' | 'poll' | 'fs' | 'parcel';

/** A tree `root` that is watched, and what is reported of it. */
class Stage {
  readonly root = join(temporaryDirectory(), 'root');
  readonly changes: Change[] = [];
  readonly errors: Error[] = [];
  readonly clock = new FakeClock();
  readonly backend = new ScriptedBackend();
  readonly #kind: Kind;
  #watcher: ResilientWatcher | undefined;
  #noticed = (): void => undefined;

  constructor(kind: Kind) {
    this.#kind = kind;
    mkdirSync(this.root);
  }

  get watcher(): ResilientWatcher {
    if (!this.#watcher) throw new Error('watch() comes first');
    return this.#watcher;
  }

  get keys(): string[] {
    return [...(this.watcher.current?.files.keys() ?? [])].sort();
  }

  async watch(options: ResilientWatcherOptions = {}): Promise<void> {
    const isFake = this.#kind === 'scripted' || this.#kind === 'poll';
    const watcher = new ResilientWatcher(this.root, {
      recursive: true,
      backend: this.#kind === 'scripted' ? this.backend : this.#kind,
      resyncIntervalMs: 0,
      missingGraceMs: 1,
      ...(isFake && { clock: this.clock }),
      ...options,
    });
    this.#watcher = watcher;
    watcher.on('change', (change) => {
      this.changes.push(change);
      this.#noticed();
    });
    watcher.on('error', (error) => this.errors.push(error));
    watcher.on('unreadable', ({ error }) => this.errors.push(error));
    onTestFinished(() => watcher.close());
    await watcher.start();
  }

  /** Resolves when the files are these; without kernel hints, something has happened at `paths`. */
  async shows(keys: readonly string[], ...paths: string[]): Promise<void> {
    if (this.#kind === 'scripted' || this.#kind === 'poll') {
      if (this.#kind === 'scripted') for (const path of paths) this.backend.hint(join(this.root, path));
      await this.#pass();
      expect(this.keys).toEqual(keys);
      return;
    }
    while (JSON.stringify(this.keys) !== JSON.stringify(keys)) await this.notice();
  }

  notice(): Promise<void> {
    return new Promise((resolve) => {
      this.#noticed = resolve;
    });
  }

  write(path: string, text = path): void {
    mkdirSync(join(this.root, path, '..'), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  async #pass(): Promise<void> {
    for (let second = 0; second < 3; second += 1) {
      await this.watcher.idle();
      await this.clock.advance(1_000);
    }
    await this.watcher.idle();
  }
}

describe.each<Kind>(['scripted', 'poll', 'fs', 'parcel'])('a tree, with hints from %s', (kind) => {
  test('what is created, changed and removed at any depth is reported', async () => {
    const stage = new Stage(kind);
    stage.write('a');
    stage.write('b/c/d');
    await stage.watch();
    expect(stage.watcher.current?.kind).toBe('tree');
    expect(stage.changes.map(({ added, cause }) => ({ added: [...added].sort(), cause }))).toEqual([
      { added: ['a', 'b/c/d'], cause: 'start' },
    ]);
    stage.write('b/x/y/z');
    await stage.shows(['a', 'b/c/d', 'b/x/y/z'], 'b/x');
    stage.write('b/x/y/z2');
    await stage.shows(['a', 'b/c/d', 'b/x/y/z', 'b/x/y/z2'], 'b/x/y/z2');
    renameSync(join(stage.root, 'b/x'), join(stage.root, 'e'));
    await stage.shows(['a', 'b/c/d', 'e/y/z', 'e/y/z2'], 'b/x', 'e');
    stage.write('e/y/z3');
    await stage.shows(['a', 'b/c/d', 'e/y/z', 'e/y/z2', 'e/y/z3'], 'e/y/z3');
    rmSync(join(stage.root, 'e'), { recursive: true });
    await stage.shows(['a', 'b/c/d'], 'e');
    const before = stage.watcher.current?.files.get('a')?.digest;
    stage.write('a', 'longer than before');
    if (kind === 'scripted' || kind === 'poll') await stage.shows(['a', 'b/c/d'], 'a');
    while (stage.watcher.current?.files.get('a')?.digest === before) await stage.notice();
    expect(stage.changes.at(-1)).toMatchObject({ added: [], changed: ['a'], removed: [] });
    expect(stage.errors).toEqual([]);
  });

  test('a root that is deleted and made again is followed', async () => {
    const stage = new Stage(kind);
    stage.write('a/b');
    await stage.watch();
    rmSync(stage.root, { recursive: true });
    await stage.shows([], '');
    stage.write('c/d/e');
    await stage.shows(['c/d/e'], '');
    stage.write('c/d/f');
    await stage.shows(['c/d/e', 'c/d/f'], 'c/d/f');
  });

  test.each([
    ['', []],
    [', whatever is ignored of its own names', ['**/.*', '**/..data']],
  ])('a volume in it shows its keys, and a swap changes them%s', async (_, ignore) => {
    const stage = new Stage(kind);
    stage.write('plain');
    const volume = new KubeletVolume(join(stage.root, 'etc/app'));
    volume.publish({ key: 'v1', 'conf.d/nested': 'v1', gone: 'v1' });
    await stage.watch({ recursive: { ignore } });
    expect(stage.keys).toEqual(['etc/app/conf.d/nested', 'etc/app/gone', 'etc/app/key', 'plain']);
    volume.publish({ key: 'v2', 'conf.d/nested': 'v2' });
    const nested = (): string => String(stage.watcher.current?.files.get('etc/app/conf.d/nested')?.content);
    await stage.shows(['etc/app/conf.d/nested', 'etc/app/key', 'plain'], 'etc/app/..data');
    expect(nested()).toBe('v2');
    volume.publish({ key: 'v3', 'conf.d/nested': 'v3' });
    await stage.shows(['etc/app/conf.d/nested', 'etc/app/key', 'plain'], 'etc/app/..data');
    while (nested() !== 'v3') await stage.notice();
    expect(stage.changes.flatMap(({ added }) => added).filter((key) => key.includes('..'))).toEqual([]);
  });

  test('contents come when they are asked for, what is ignored does not, links are followed when asked', async () => {
    const stage = new Stage(kind);
    stage.write('a');
    stage.write('node_modules/x');
    const store = join(stage.root, '../store');
    mkdirSync(store);
    writeFileSync(join(store, 'file'), 'file');
    symlinkSync('../store', join(stage.root, 'link'));
    await stage.watch({ recursive: { ignore: ['**/node_modules'], followLinks: true } });
    const texts = () =>
      Object.fromEntries(
        [...(stage.watcher.current?.files ?? [])].map(([key, { content }]) => [key, String(content)]),
      );
    expect(texts()).toEqual({ a: 'a', 'link/file': 'file' });
    writeFileSync(join(store, 'new'), 'new');
    stage.write('node_modules/y');
    await stage.shows(['a', 'link/file', 'link/new'], '../store/new');
    expect(texts()).toEqual({ a: 'a', 'link/file': 'file', 'link/new': 'new' });
  });
});

test('a hint that says where makes it look there only, one that does not makes it look everywhere', async () => {
  const stage = new Stage('scripted');
  await stage.watch();
  stage.write('a');
  stage.write('b');
  await stage.shows(['a'], 'a');
  stage.backend.hint();
  await stage.watcher.idle();
  await stage.clock.advance(1_000);
  await stage.watcher.idle();
  expect(stage.keys).toEqual(['a', 'b']);
  stage.write('c');
  await stage.watcher.check();
  await stage.clock.advance(1_000);
  await stage.watcher.idle();
  expect(stage.keys).toEqual(['a', 'b', 'c']);
});

test.each([true, false])(
  'a file that is written all the time holds up no other, recursive: %s',
  async (recursive) => {
    const stage = new Stage('scripted');
    stage.write('log', 'x');
    stage.write('other', 'x');
    await stage.watch({ recursive });
    const told = (): unknown =>
      stage.changes.splice(0).map(({ added, changed, removed }) => [added, changed, removed]);
    const write = async (line: number): Promise<void> => {
      stage.write('log', 'x'.repeat(line));
      stage.backend.hint(join(stage.root, 'log'));
      await stage.watcher.idle();
      await stage.clock.advance(20);
    };
    told();
    for (let line = 2; line < 10; line += 1) await write(line);
    expect(told()).toEqual([]);
    stage.write('other', 'changed');
    stage.backend.hint(join(stage.root, 'other'));
    for (let line = 10; line < 16; line += 1) await write(line);
    expect(told()).toEqual([[[], ['other'], []]]);
    expect(stage.watcher.current?.files.get('log')?.size).toBe(1);
    rmSync(join(stage.root, 'other'));
    stage.backend.hint(join(stage.root, 'other'));
    for (let line = 16; line < 30; line += 1) await write(line);
    expect(told()).toEqual([[[], [], ['other']]]);
    await stage.clock.advance(1_000);
    await stage.watcher.idle();
    expect(told()).toEqual([[[], ['log'], []]]);
    expect(stage.watcher.current?.files.get('log')?.size).toBe(29);
  },
);

test('a new directory leads to a check at it alone', async () => {
  const scanned: string[] = [];
  const scandir = (path: string) => {
    scanned.push(path);
    return nodeFileSystem.sync.scandir(path);
  };
  const stage = new Stage('scripted');
  stage.write('a/b');
  await stage.watch({ fs: { ...nodeFileSystem, sync: { ...nodeFileSystem.sync, scandir } } });
  expect(scanned).toContain(join(stage.root, 'a'));
  scanned.length = 0;
  stage.write('c/d/e');
  await stage.shows(['a/b', 'c/d/e'], 'c');
  expect([...new Set(scanned)].sort()).toEqual([join(stage.root, 'c'), join(stage.root, 'c/d')]);
});

test.runIf(process.platform === 'linux')(
  'a tree that outgrows what `fs` does well goes over to `parcel`, and is reported on',
  async () => {
    const stage = new Stage('fs');
    const directories = (from: number, to: number): void => {
      for (let number = from; number < to; number += 1) mkdirSync(join(stage.root, `d${number}`));
    };
    directories(0, 4_000);
    // That is no failure, so it takes no restart.
    await stage.watch({ backend: 'auto', maxRestarts: 0 });
    expect(stage.watcher.status().backend).toBe('fs');
    directories(4_000, 4_200);
    stage.write('d4199/grown');
    await stage.shows(['d4199/grown']);
    await stage.watcher.idle();
    expect(stage.watcher.status()).toMatchObject({ state: 'watching', backend: 'parcel', restarts: 0 });
    stage.write('d4100/file');
    await stage.shows(['d4100/file', 'd4199/grown']);
    expect(stage.errors).toEqual([]);
  },
);

test('a file that cannot be read just now keeps its content, and is an error until it can', async () => {
  const stage = new Stage('scripted');
  stage.write('x', 'one');
  stage.write('y', 'one');
  let left = Infinity;
  const fs = faultyFileSystem((name, [path]) => {
    if (name === 'open' && left <= 0) throw errno('EMFILE', String(path));
  });
  await stage.watch({ fs });
  const text = (key: string): string => String(stage.watcher.current?.files.get(key)?.content);
  left = 0;
  stage.write('x', 'two');
  await stage.shows(['x', 'y'], 'x');
  expect([text('x'), text('y')]).toEqual(['one', 'one']);
  expect(stage.errors).toMatchObject([{ code: 'ERR_TARGET_IO' }]);
  left = Infinity;
  stage.backend.hint();
  await stage.shows(['x', 'y']);
  expect([text('x'), text('y'), stage.errors.length]).toEqual(['two', 'one', 1]);
});

test('a file that may not be read is told apart by its identity, and its content comes when it may', async () => {
  const stage = new Stage('scripted');
  const secret = join(stage.root, 'secret');
  stage.write('secret');
  let isDenied = true;
  const fs = faultyFileSystem((name, [path]) => {
    if (name === 'open' && isDenied && path === secret) throw errno('EACCES', secret);
  });
  await stage.watch({ fs });
  const contents: unknown[] = [];
  for (const change of [
    () => utimesSync(secret, 1, 1),
    () => {
      isDenied = false;
      chmodSync(secret, 0o640);
    },
    () => chmodSync(secret, 0o600),
  ]) {
    change();
    await stage.shows(['secret'], 'secret');
    contents.push(stage.watcher.current?.files.get('secret')?.content?.toString());
  }
  expect(stage.changes.map(({ added, changed }) => [...added, ...changed])).toEqual([
    ['secret'],
    ['secret'],
    ['secret'],
  ]);
  expect([contents, stage.errors]).toEqual([[undefined, 'secret', 'secret'], []]);
});

test('a directory that cannot be listed for want of descriptors keeps its files, and is an error until it can', async () => {
  const stage = new Stage('scripted');
  stage.write('a/x');
  let isExhausted = false;
  const fs = faultyFileSystem((name, [path]) => {
    if (isExhausted && name === 'scandir' && path === join(stage.root, 'a')) throw errno('EMFILE', path);
  });
  await stage.watch({ fs });
  isExhausted = true;
  stage.write('a/y');
  await stage.shows(['a/x'], 'a');
  expect(stage.errors).toMatchObject([{ code: 'ERR_TARGET_IO', path: join(stage.root, 'a') }]);
  isExhausted = false;
  await stage.shows(['a/x', 'a/y'], 'a');
  expect(stage.errors).toHaveLength(1);
});

test('at the start one file that is being written, and one that may not be read, hold up nothing', async () => {
  const stage = new Stage('scripted');
  for (const file of ['busy', 'secret', 'whole']) stage.write(file);
  const fs = faultyFileSystem((name, [path]) => {
    if (name !== 'open') return;
    if (String(path).endsWith('secret')) throw errno('EACCES', String(path));
    if (String(path).endsWith('busy')) appendFileSync(String(path), '.');
  });
  await stage.watch({ fs });
  expect(stage.keys).toEqual(['secret', 'whole']);
  expect(stage.watcher.current?.files.get('secret')).toMatchObject({ content: undefined, size: 6 });
  for (let second = 0; second < 12; second += 1) {
    await stage.clock.advance(1_000);
    await stage.watcher.idle();
  }
  expect(stage.keys).toEqual(['busy', 'secret', 'whole']);
  expect(stage.errors).toEqual([]);
});

test('a write that no stamp and no hint shows is found by the resync, though hints told of other files', async () => {
  const stage = new Stage('scripted');
  stage.write('x', 'one');
  stage.write('y', 'one');
  const coarse = (stat: unknown): unknown => Object.assign(stat as object, { mtimeNs: 1n, ctimeNs: 1n });
  const sync = {
    ...nodeFileSystem.sync,
    lstat: (path: string) => coarse(nodeFileSystem.sync.lstat(path)) as BigIntStats,
    fstat: (fd: number) => coarse(nodeFileSystem.sync.fstat(fd)) as BigIntStats,
  };
  await stage.watch({ resyncIntervalMs: 10_000, fs: { ...nodeFileSystem, sync } });
  const pass = async (ms: number): Promise<void> => {
    await stage.clock.advance(ms);
    await stage.watcher.idle();
  };
  await pass(20_000);
  stage.write('x', 'four');
  stage.backend.hint(join(stage.root, 'x'));
  await stage.watcher.idle();
  await pass(100);
  await pass(100);
  stage.write('x', 'five');
  await pass(2_500);
  stage.backend.hint(join(stage.root, 'y'));
  await stage.watcher.idle();
  for (let round = 0; round < 3; round += 1) {
    await pass(10_000);
    await pass(100);
  }
  expect(String(stage.watcher.current?.files.get('x')?.content)).toBe('five');
});

test('after its backend has died everything is looked at again', async () => {
  const stage = new Stage('scripted');
  await stage.watch();
  stage.write('a/b');
  stage.backend.fail();
  await stage.shows(['a/b']);
  expect(stage.watcher.state).toBe('watching');
});

test('a file where the tree was is an error, and healed when the tree is back', async () => {
  const stage = new Stage('scripted');
  stage.write('a');
  await stage.watch();
  rmSync(stage.root, { recursive: true });
  writeFileSync(stage.root, '');
  await stage.shows(['a'], '');
  expect(stage.errors).toMatchObject([{ code: 'ERR_TARGET_NOT_DIRECTORY', path: stage.root }]);
  rmSync(stage.root);
  stage.write('b');
  await stage.shows(['b'], '');
  expect((await stage.watcher.snapshot()).files.size).toBe(1);
});

test('over a limit keeps digests or identities of all its files, and says so once', async () => {
  const stage = new Stage('scripted');
  const warnings: string[] = [];
  const write = (name: string, text: string): void => writeFileSync(join(stage.root, name), text);
  write('a', 'x'.repeat(90));
  await stage.watch({ maxFiles: 2, maxContentBytes: 100, maxTotalBytes: 150 });
  stage.watcher.on('warning', ({ message }) => warnings.push(/max\w+/.exec(message)?.[0] ?? message));
  const kept = (): unknown =>
    [...(stage.watcher.current?.files.values() ?? [])].map(
      ({ content, digest }) => content?.length ?? digest.slice(0, 4),
    );
  expect(kept()).toEqual([90]);
  write('b', 'x'.repeat(90));
  await stage.shows(['a', 'b'], 'b');
  expect(kept()).toEqual(['sha2', 'sha2']);
  write('c', '');
  await stage.shows(['a', 'b', 'c'], 'c');
  expect(kept()).toEqual(['stat', 'stat', 'stat']);
  expect(warnings).toEqual(['maxTotalBytes', 'maxFiles']);
});
