import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  ResilientWatcher,
  nodeFileSystem,
  type FileSystem,
  type FileSystemCalls,
  type HintSink,
  type WatchBackend,
} from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const KEYS = Array.from({ length: 20 }, (_, index) => `key-${index}`);

let root: string;
let volume: KubeletVolume;
let sinks: Set<HintSink>;
let watchers: ResilientWatcher[];

/** Never asks for another check after its directories are set, so that a hint is worth exactly one: nothing heals a bad one. */
const backend: WatchBackend = {
  name: 'single',
  subscribe(sink) {
    sinks.add(sink);
    return { setDirectories: () => [], close: () => void sinks.delete(sink) };
  },
};

function hint(): Promise<unknown> {
  for (const sink of sinks) sink.hint();
  return Promise.all(watchers.map((watcher) => watcher.idle()));
}

/** What every call of the watchers goes by, before and after it is made. */
let before: (name: string, path: unknown) => void;
let after: (name: string, path: unknown) => void;

function observed(): FileSystem {
  const sync = Object.fromEntries(
    Object.entries(nodeFileSystem.sync).map(([name, call]) => [
      name,
      (...args: unknown[]): unknown => {
        before(name, args[0]);
        const answer: unknown = (call as (...args: unknown[]) => unknown)(...args);
        after(name, args[0]);
        return answer;
      },
    ]),
  ) as unknown as FileSystemCalls;
  return { ...nodeFileSystem, sync };
}

function filesOf(content: string): Record<string, string> {
  return Object.fromEntries(KEYS.map((key) => [key, `${key} ${content}`]));
}

function publish(content: string): void {
  volume.publish(filesOf(content));
}

const contents = (): (string | undefined)[] => watchers.map(({ current }) => current?.content?.toString());

beforeEach(async () => {
  before = after = () => undefined;
  root = mkdtempSync(join(tmpdir(), 'shared-turn-'));
  volume = new KubeletVolume(join(root, 'volume'));
  publish('old');
  sinks = new Set();
  const options = { backend, fs: observed(), clock: new FakeClock() };
  watchers = KEYS.map((key) => new ResilientWatcher(volume.path(key), options));
  await Promise.all(watchers.map((watcher) => watcher.start()));
  // What is local is known after the first check; from the second one on checks are synchronous.
  await hint();
});

afterEach(async () => {
  await Promise.all(watchers.map((watcher) => watcher.close()));
  rmSync(root, { recursive: true, force: true });
});

// Only on Linux is it known which file systems may be asked synchronously.
describe.skipIf(process.platform !== 'linux')('checks taken in the same turn', () => {
  test('make the calls they have in common once, and again in the next turn', async () => {
    for (const content of ['first', 'second', 'second']) {
      publish(content);
      const asked: unknown[] = [];
      before = (name, path) => name === 'lstat' && asked.push(path);
      await hint();
      expect(asked.filter((path) => path === volume.directory)).toHaveLength(1);
      // Telemetry asks for the stamp of `..data` besides.
      expect(asked.filter((path) => path === root)).toHaveLength(1);
      expect(contents()).toEqual(KEYS.map((key) => `${key} ${content}`));
    }
  });

  test.each(['open', 'close'])('see a swap that comes at the first "%s" of the turn', async (moment) => {
    const swap = (name: string): void => {
      if (name !== moment) return;
      before = after = () => undefined;
      publish('new');
    };
    if (moment === 'open') before = swap;
    else after = swap;
    publish('middle');
    await hint();
    expect(contents().slice(1)).toEqual(KEYS.slice(1).map((key) => `${key} new`));

    await hint();
    expect(contents()).toEqual(KEYS.map((key) => `${key} new`));
  });

  test('report a set whole or not at all, whenever a swap comes', async () => {
    const torn: unknown[] = [];
    const options = { backend, fs: observed(), clock: new FakeClock() };
    const targets = [volume.directory, volume.directory, KEYS.slice(0, 3).map((key) => volume.path(key))];
    const sets = targets.map((target) => new ResilientWatcher(target, options));
    for (const set of sets) {
      set.on('change', ({ current: { kind, files } }) => {
        const texts = new Set([...files].map(([, { content }]) => String(content).split(' ')[1]));
        if (files.size !== (kind === 'group' ? 3 : KEYS.length) || texts.size > 1)
          torn.push([kind, files.size, texts]);
      });
    }
    watchers.push(...sets);
    await Promise.all(sets.map((set) => set.start()));
    await hint();
    const total = KEYS.length;
    for (let moment = 0, calls = Infinity; moment < calls; moment += 14) {
      publish(`at-${moment}`);
      calls = 0;
      const revision = volume.path(String(volume.revision));
      before = () => {
        calls += 1;
        // The link leads elsewhere, and the old revision is half removed.
        if (calls !== moment) return;
        const isHalfRemoved = (): boolean => readdirSync(revision).length < total / 2;
        for (const _ of volume.steps(filesOf(`during-${moment}`))) if (isHalfRemoved()) break;
      };
      await hint();
      before = () => undefined;
      await hint();
      expect(torn).toEqual([]);
    }
  });
});
