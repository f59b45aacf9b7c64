/** Limits on what is read, in every kind of target: nobody loses contents without a warning. */
import { rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { healthOf, ResilientWatcher } from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

type Target = string | readonly string[];

/** Time passes until this has settled. */
async function passUntil(clock: FakeClock, promise: Promise<void>): Promise<void> {
  const state = { isSettled: false };
  void promise.then(() => (state.isSettled = true));
  while (!state.isSettled) await clock.advance(10);
}

async function watch(path: Target, options: ResilientWatcherOptions) {
  const clock = new FakeClock(Date.now());
  const watcher = new ResilientWatcher(path, { clock, backend: 'poll', resyncIntervalMs: 0, ...options });
  onTestFinished(() => watcher.close());
  const warnings: string[] = [];
  watcher.on('warning', ({ code, message }) => warnings.push(`${code}: ${message}`));
  await passUntil(clock, watcher.start());
  const check = async (): Promise<void> => {
    await clock.advance(5_000);
    await watcher.idle();
  };
  const contents = () => [...(watcher.current?.files.values() ?? [])].map(({ content }) => content?.length);
  return { watcher, warnings, check, contents };
}

const kinds = ['a file', 'a key', 'a directory', 'a tree', 'a group', 'a volume'] as const;

/** Two files, of which the first is watched in this way, and how their sizes are changed. */
function target(kind: (typeof kinds)[number]) {
  const directory = temporaryDirectory();
  const [a, b] = [`${directory}/a`, `${directory}/b`];
  const volume = kind === 'a key' || kind === 'a volume' ? new KubeletVolume(directory) : undefined;
  const write = (sizeOfA: number, sizeOfB: number): void => {
    const contents = { a: 'a'.repeat(sizeOfA), b: 'b'.repeat(sizeOfB) };
    if (volume) volume.publish(contents);
    else for (const [name, text] of Object.entries(contents)) writeFileSync(`${directory}/${name}`, text);
  };
  const isOne = kind === 'a file' || kind === 'a key';
  const path: Target = isOne ? a : kind === 'a group' ? [a, b] : directory;
  return { path, write, options: kind === 'a tree' ? { recursive: true } : {} };
}

test.each(kinds)('%s that becomes larger than maxContentBytes is a warning, once', async (kind) => {
  const { path, write, options } = target(kind);
  write(10, 10);
  const { watcher, warnings, check, contents } = await watch(path, { ...options, maxContentBytes: 50 });
  expect(warnings).toEqual([]);
  for (const size of [51, 52]) {
    write(size, 10);
    await check();
    expect(contents()[0]).toBeUndefined();
  }
  expect(warnings).toEqual([expect.stringMatching(/^limit: .*maxContentBytes \(50\)/)]);
  expect(watcher.status().warnings).toHaveLength(1);
  write(20, 10);
  await check();
  expect(contents()[0]).toBe(20);
  expect(watcher.status().warnings).toEqual([]);
});

test.each(kinds)('%s that is as large as maxContentBytes is read', async (kind) => {
  const { path, write, options } = target(kind);
  write(50, 10);
  const { warnings, contents } = await watch(path, { ...options, maxContentBytes: 50 });
  expect(contents()[0]).toBe(50);
  expect(warnings).toEqual([]);
});

test('a warning goes with the file that it is about, and not while that is gone for a moment', async () => {
  const { path, write } = target('a file');
  write(51, 10);
  const { watcher, warnings, check } = await watch(path, { maxContentBytes: 50, missingGraceMs: 12_000 });
  for (const count of [1, 2]) {
    expect(warnings).toHaveLength(count);
    rmSync(String(path));
    await check();
    expect(watcher.status().warnings).toHaveLength(1);
    await check();
    await check();
    expect(watcher.status()).toMatchObject({ target: 'missing', warnings: [] });
    write(51, 10);
    await check();
    expect(watcher.status().warnings).toHaveLength(1);
  }
});

const sets = kinds.filter((kind) => kind !== 'a file' && kind !== 'a key');

test.each(sets)(
  '%s with more bytes than maxTotalBytes keeps digests only, and contents again',
  async (kind) => {
    const { path, write, options } = target(kind);
    write(10, 10);
    const { watcher, warnings, check, contents } = await watch(path, { ...options, maxTotalBytes: 50 });
    write(30, 30);
    await check();
    expect(contents()).toEqual([undefined, undefined]);
    expect([...(watcher.current?.files.values() ?? [])].map(({ digest }) => digest.slice(0, 7))).toEqual([
      'sha256:',
      'sha256:',
    ]);
    expect(warnings).toEqual([expect.stringMatching(/^limit: .*maxTotalBytes \(50\)/)]);
    write(11, 10);
    await check();
    expect(contents()).toEqual([11, 10]);
  },
);

test.each(['a file', 'a directory', 'a tree', 'a group'] as const)(
  '%s of which nothing is read is told when it is written again with the same size and time',
  async (kind) => {
    const { path, write, options } = target(kind);
    const [first = ''] = [path].flat();
    const file = kind === 'a directory' || kind === 'a tree' ? `${first}/a` : first;
    const writeOld = (): void => {
      write(10, 10);
      utimesSync(file, 1, 1);
    };
    writeOld();
    const { watcher, check } = await watch(path, { maxContentBytes: 1, ...options });
    const changes: string[] = [];
    watcher.on('change', ({ changed }) => changes.push(...changed));
    const changedAt = (): bigint => statSync(file, { bigint: true }).ctimeNs;
    for (const before = changedAt(); changedAt() === before;) writeOld();
    await check();
    expect(changes.map((key) => key.split('/').at(-1))).toContain('a');
  },
);

test.each(sets)('%s with more files than maxFiles is not read', async (kind) => {
  const { path, write, options } = target(kind);
  write(10, 10);
  const { warnings, contents } = await watch(path, { ...options, maxFiles: 1 });
  expect(contents()).toEqual([undefined, undefined]);
  expect(warnings).toEqual([expect.stringMatching(/^limit: .*maxFiles \(1\)/)]);
});

test.each(['a directory', 'a tree'] as const)(
  '%s is read again once files are removed so that it is within its limits, and tells only these',
  async (kind) => {
    const { path, write, options } = target(kind);
    write(10, 10);
    const limits = { ...options, maxFiles: 2, maxTotalBytes: 25 };
    const { watcher, check, contents } = await watch(path, limits);
    const told: string[] = [];
    watcher.on('change', ({ added, changed, removed }) =>
      told.push(`+${added.join()} ~${changed.join()} -${removed.join()}`),
    );
    expect(contents()).toEqual([10, 10]);
    for (const size of [10, 15]) {
      const extra = ['x', 'y'].map((name) => `${String(path)}/${name}`);
      for (const name of extra) writeFileSync(name, 'z'.repeat(size));
      await check();
      await check();
      expect(contents()).toEqual([undefined, undefined, undefined, undefined]);
      for (const name of extra) rmSync(name);
      await check();
      await check();
      expect(watcher.current?.files.size).toBe(2);
      expect(contents()).toEqual([10, 10]);
      expect(told.splice(0)).toEqual(['+x,y ~ -', '+ ~ -x,y']);
    }
  },
);

test.each([{ resyncIntervalMs: 0 }, { resyncIntervalMs: 5_000 }])(
  'a watcher that polls is live for three intervals after its last poll: %o',
  async (options) => {
    const { path, write } = target('a file');
    write(1, 1);
    let lateMs = 0;
    const clock = new FakeClock(Date.now());
    const monotonic = (): number => clock.monotonic() + lateMs;
    const late = Object.assign(Object.create(clock) as FakeClock, {
      monotonic,
      now: () => clock.now(),
      schedule: clock.schedule.bind(clock),
    });
    const watcher = new ResilientWatcher(path, { clock: late, backend: 'poll', ...options });
    onTestFinished(() => watcher.close());
    await passUntil(clock, watcher.start());
    lateMs = 2_900;
    expect(healthOf(watcher).live).toBe(true);
    lateMs = 3_100;
    expect(healthOf(watcher).live).toBe(false);
  },
);
