/** A swap is answered in the callback of the event, and the check that follows proves the answer. */
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem, ResilientWatcher, type FileSystem, type Snapshot } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { InPlaceWrites } from '../../src/watch/report/in-place-writes.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** What is watched, by name. */
const TARGETS = {
  'a key': (volume: KubeletVolume) => volume.path('key'),
  'a volume': (volume: KubeletVolume) => volume.directory,
  'a group of keys': (volume: KubeletVolume) => [volume.path('key'), volume.path('second')],
};

const kinds = Object.keys(TARGETS) as (keyof typeof TARGETS)[];

/** The two keys have the same content in each revision. */
const both = (text: string) => ({ key: text, second: text });

/** The contents, of which a set has one where all are equal. */
function textOf(snapshot: Snapshot): string {
  if (snapshot.kind === 'missing') return '(missing)';
  const contents = [...snapshot.files.values()].map(({ content }) => content?.toString() ?? '');
  return [...new Set(contents)].join(' ');
}

/** A watcher of a target in a volume, started. */
async function watched(
  kind: keyof typeof TARGETS = 'a key',
  fs: FileSystem = nodeFileSystem,
  { reportsWrites = true } = {},
) {
  const scene = new ScriptedScene({ reportsWrites });
  const { volume, backend } = scene;
  volume.publish(both('one'));
  const watcher = scene.create(TARGETS[kind](volume), { fs });
  await watcher.start();
  const reported: string[] = [];
  watcher.on('change', ({ current }) => reported.push(textOf(current)));
  return { volume, backend, watcher, reported };
}

/** The real calls; before each `readlink` of this path `intervene` runs. */
function fileSystemWith(intervene: (path: string) => void): FileSystem {
  const { sync } = nodeFileSystem;
  const readlink = (path: string): string => {
    intervene(path);
    return sync.readlink(path);
  };
  return { ...nodeFileSystem, sync: { ...sync, readlink } };
}

describe.each(kinds)('%s', (kind) => {
  test('the first event after a swap reports it, whichever entry it names, and the check adds nothing', async () => {
    for (const name of ['..data', '..data_tmp', 'key', 'other', '.']) {
      const { volume, backend, watcher, reported } = await watched(kind);
      volume.publish(both('two'));
      backend.hint(volume.path(name));
      expect(reported).toEqual(['two']);
      backend.hint(volume.path('..data'));
      await watcher.idle();
      expect(reported).toEqual(['two']);
      if (kind !== 'a group of keys') expect(watcher.status().revision).toBe(volume.revision);
    }
  });

  test('each of many swaps is reported in its callback', async () => {
    const { volume, backend, watcher, reported } = await watched(kind);
    const texts = ['two', '', 'four', 'five'];
    for (const text of texts) {
      volume.publish(both(text));
      const before = reported.length;
      backend.hint(volume.path('..data'));
      expect(reported.slice(before)).toEqual([text]);
      await watcher.idle();
    }
    expect(reported).toEqual(texts);
  });

  test('events before the swap change nothing, and the one that names the link reports it', async () => {
    const { volume, backend, watcher, reported } = await watched(kind);
    backend.hint(volume.path('key'));
    volume.publish(both('two'));
    backend.hint(volume.path('key'));
    expect(reported).toEqual([]);
    backend.hint(volume.path('..data'));
    expect(reported).toEqual(['two']);
    await watcher.idle();
    expect(reported).toEqual(['two']);
  });

  test('an event about another revision or the pending link leads to no check, one about the current revision does', async () => {
    const { volume, backend, watcher } = await watched(kind);
    const { checks } = watcher.status();
    for (const name of ['..data_tmp', '..2020_01_01_00_00_00.1']) backend.hint(volume.path(name));
    await watcher.idle();
    expect(watcher.status().checks).toBe(checks);
    for (const name of [volume.revision ?? '', '..data', 'key', 'other']) {
      const before = watcher.status().checks;
      backend.hint(volume.path(name));
      await watcher.idle();
      expect(watcher.status().checks).toBeGreaterThan(before);
    }
  });

  test('from a backend that merges events, an event about another revision leads to a check', async () => {
    const { volume, backend, watcher, reported } = await watched(kind, nodeFileSystem, {
      reportsWrites: false,
    });
    volume.publish(both('two'));
    backend.hint(volume.path('..2020_01_01_00_00_00.1'));
    await watcher.idle();
    const { checks } = watcher.status();
    backend.hint(volume.path('..2020_01_01_00_00_00.1'));
    await watcher.idle();
    expect(watcher.status().checks).toBeGreaterThan(checks);
    expect(reported).toEqual(['two']);
  });

  test('a write that leads to no check is not recorded, since only a check clears the record', async () => {
    const remembered = vi.spyOn(InPlaceWrites.prototype, 'reported');
    onTestFinished(() => remembered.mockRestore());
    const { volume, backend, watcher } = await watched(kind);
    for (let other = 0; other < 3; other += 1) backend.written(volume.path(`..other.${other}`));
    await watcher.idle();
    backend.written(volume.path('key'));
    await watcher.idle();
    expect(remembered.mock.calls).toEqual([[volume.path('key')]]);
  });

  test('a swap back before the check is reported by the check', async () => {
    const { volume, backend, watcher, reported } = await watched(kind);
    volume.publish(both('two'));
    backend.hint(volume.path('..data'));
    volume.publish(both('one'));
    backend.hint(volume.path('..data'));
    await watcher.idle();
    expect(reported).toEqual(['two', 'one']);
  });

  test('a new revision with the same contents is not a change', async () => {
    const { volume, backend, watcher, reported } = await watched(kind);
    volume.publish({ ...both('one'), other: kind === 'a volume' ? 'one' : 'another' });
    volume.publish(both('one'));
    backend.hint(volume.path('..data'));
    await watcher.idle();
    expect(reported).toEqual([]);
  });

  // A group spans volumes, so it has no revision.
  test.runIf(kind !== 'a group of keys')(
    'a new revision with the same contents is reported once, in its callback',
    async () => {
      const { volume, backend, watcher } = await watched(kind);
      const revisions: unknown[] = [];
      watcher.on('revision', (revision) => revisions.push(revision));
      const previous = volume.revision;
      volume.publish({ ...both('one'), other: 'x' });
      volume.publish(both('one'));
      const expected = [{ previous, current: volume.revision }];
      expect(expected).not.toEqual([{ previous, current: previous }]);
      backend.hint(volume.path('..data'));
      expect(revisions).toEqual(expected);
      await watcher.idle();
      expect(revisions).toEqual(expected);
      expect(watcher.status().revision).toBe(volume.revision);
    },
  );

  test('a listener that closes the watcher in the callback ends it', async () => {
    const { volume, backend, watcher, reported } = await watched(kind);
    const closed = new Promise<void>((resolve) => {
      watcher.once('change', () => void watcher.close().then(resolve));
    });
    volume.publish(both('two'));
    backend.hint(volume.path('..data'));
    await closed;
    expect(reported).toEqual(['two']);
    expect(watcher.state).toBe('closed');
    expect(backend.subscriptions).toBe(0);
  });
});

describe.each(['a volume', 'a group of keys'] as const)('%s', (kind) => {
  test('a swap while the files are read gives no answer, and no set of two revisions', async () => {
    let reads = 0;
    let swap: (() => void) | undefined;
    const fs = fileSystemWith((path) => {
      // The second reading of the link is the proof that the set stood still.
      if (swap && path.endsWith('/..data') && (reads += 1) === 2) swap();
    });
    const { volume, backend, watcher, reported } = await watched(kind, fs);
    swap = () => {
      swap = undefined;
      volume.publish(both('three'));
    };
    volume.publish(both('two'));
    backend.hint(volume.path('..data'));
    expect(swap).toBeUndefined();
    expect(reported).toEqual([]);
    await watcher.idle();
    expect(reported).toEqual(['three']);
  });
});

test.each([
  { how: 'of the same link', hinted: '..data' },
  { how: 'that a file was written', hinted: 'key', isWritten: true },
  { how: 'about anything', hinted: undefined },
])('a hint $how from within a call leads to a check, after what is being read was reported', async (hint) => {
  let intervene: (() => void) | undefined;
  const { sync } = nodeFileSystem;
  const close = (fd: number): void => {
    sync.close(fd);
    intervene?.();
  };
  const fs = { ...nodeFileSystem, sync: { ...sync, close } };
  const { volume, backend, watcher, reported } = await watched('a key', fs);
  intervene = () => {
    intervene = undefined;
    volume.publish(both('three'));
    const path = hint.hinted === undefined ? undefined : volume.path(hint.hinted);
    if (path !== undefined && hint.isWritten) backend.written(path);
    else backend.hint(path);
  };
  volume.publish(both('two'));
  backend.hint(volume.path('..data'));
  expect(reported).toEqual(['two']);
  await watcher.idle();
  expect(reported).toEqual(['two', 'three']);
});

test('keys that come and go with a swap are part of the same change', async () => {
  const { volume, backend, watcher } = await watched('a volume');
  const changes: unknown[] = [];
  watcher.on('change', ({ added, changed, removed }) => changes.push({ added, changed, removed }));
  volume.publish({ second: 'two', third: 'two' });
  backend.hint(volume.path('..data'));
  const expected = [{ added: ['third'], changed: ['second'], removed: ['key'] }];
  expect(changes).toEqual(expected);
  await watcher.idle();
  expect(changes).toEqual(expected);
});

test('a volume with directories, with many keys or with large ones is left to the check', async () => {
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`key-${index}`, 'x']));
  const large = { key: 'x'.repeat(700_000), second: 'x'.repeat(700_000) };
  for (const files of [{ 'conf.d/key': 'x', key: 'x' }, many, large]) {
    const { volume, backend, watcher, reported } = await watched('a volume');
    volume.publish(files);
    backend.hint(volume.path('..data'));
    expect(reported).toEqual([]);
    await watcher.idle();
    expect(reported).toHaveLength(1);
    expect([...(watcher.current?.files.keys() ?? [])].sort()).toEqual(Object.keys(files).sort());
  }
});

test('a group whose keys are in two volumes is reported as one change by the check', async () => {
  const root = temporaryDirectory();
  const volumes = ['one', 'two'].map((name) => new KubeletVolume(join(root, name)));
  for (const volume of volumes) volume.publish(both('a'));
  const backend = new ScriptedBackend();
  const watcher = new ResilientWatcher(
    volumes.map((volume) => volume.path('key')),
    { clock: new FakeClock(), backend },
  );
  onTestFinished(() => watcher.close());
  await watcher.start();
  const reported: string[] = [];
  watcher.on('change', ({ current }) => reported.push(textOf(current)));
  for (const volume of volumes) volume.publish(both('b'));
  for (const volume of volumes) backend.hint(volume.path('..data'));
  await watcher.idle();
  expect(reported).toEqual(['b']);
});

test('a key whose path no longer includes the swapped link is left to the check', async () => {
  const { volume, backend, watcher, reported } = await watched();
  unlinkSync(volume.path('key'));
  mkdirSync(volume.path('..other'));
  writeFileSync(volume.path('..other/key'), 'elsewhere');
  symlinkSync('..other/key', volume.path('..next'));
  renameSync(volume.path('..next'), volume.path('key'));
  for (const step of volume.steps(both('two'))) if (step.name === 'rename') break;
  backend.hint(volume.path('..data'));
  expect(reported).toEqual([]);
  await watcher.idle();
  expect(reported).toEqual(['elsewhere']);
});

test('an event about a directory with two dots that the path leads through is one about the path', async () => {
  const scene = new ScriptedScene({ reportsWrites: true });
  const { volume } = scene;
  volume.publish({ key: 'one' });
  mkdirSync(volume.path('..links'));
  symlinkSync('../..data/key', volume.path('..links/key'));
  await scene.watch(volume.path('..links/key'));
  renameSync(volume.path('..links'), volume.path('..away'));
  await scene.hint(volume.path('..links'));
  await scene.pass(1_000);
  expect(scene.watcher.current?.kind).toBe('missing');
});

test('the first small target of a process is read several times, so that its first swap finds warm code', async () => {
  vi.resetModules();
  const { ResilientWatcher: FreshWatcher } = await import('resilient-watcher');
  const { sync } = nodeFileSystem;
  let opened = 0;
  const open: typeof sync.open = (path, flags) => {
    opened += 1;
    return sync.open(path, flags);
  };
  const readsOf = async (keys: number): Promise<number> => {
    const volume = new KubeletVolume(temporaryDirectory());
    volume.publish(Object.fromEntries(Array.from({ length: keys }, (_, n) => [`key${n}`, 'text'])));
    const fs = { ...nodeFileSystem, sync: { ...sync, open } };
    const watcher = new FreshWatcher(volume.directory, { fs, backend: new ScriptedBackend() });
    const before = opened;
    await watcher.start();
    await watcher.close();
    return (opened - before) / keys;
  };
  const large = await readsOf(64);
  const small = await readsOf(1);
  const second = await readsOf(1);
  expect([large > 2, small > 8, second > 2]).toEqual([false, true, false]);
});
