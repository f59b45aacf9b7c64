/** A file that is replaced or written all the time, beside others: it is always there, so it is in the first report. */
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs';
import { join } from 'node:path';

import {
  readVolume,
  ResilientWatcher,
  type FileSystem,
  type ResilientWatcherOptions,
} from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { fsWith, statsWith, type Called } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const LONG_AGO = Date.now() / 1_000 - 1_000_000;

/** A directory with two files that were written long ago. */
function scene() {
  const directory = temporaryDirectory();
  const [busy, other] = [join(directory, 'busy'), join(directory, 'other')];
  for (const path of [busy, other]) writeFileSync(path, 'text');
  for (const path of [busy, other]) utimesSync(path, LONG_AGO, LONG_AGO);
  /** Replaces the file by another one, which was written a second ago. */
  const replace = (): void => {
    const next = join(temporaryDirectory(), 'next');
    writeFileSync(next, 'text');
    const before = lstatSync(directory).mtimeMs;
    // Until it is later by the clock of the file system.
    do {
      utimesSync(next, LONG_AGO, Date.now() / 1_000 - 1);
      renameSync(next, `${busy}.new`);
      renameSync(`${busy}.new`, next);
    } while (lstatSync(directory).mtimeMs - before < 2);
    renameSync(next, busy);
  };
  return { directory, busy, other, replace };
}

type Scene = ReturnType<typeof scene>;

/** What is watched, by what it is called. */
const TARGETS: Record<
  string,
  (scene: Scene) => readonly [string | readonly string[], ResilientWatcherOptions]
> = {
  'a directory': ({ directory }) => [directory, {}],
  'a tree': ({ directory }) => [directory, { recursive: true }],
  'a group': ({ busy, other }) => [[other, busy], {}],
  'a file': ({ busy }) => [busy, {}],
};

const namesIn = (paths: Iterable<string>): string[] =>
  [...paths].map((path) => path.replace(/.*\//, '')).sort();

function watch([path, options]: ReturnType<(typeof TARGETS)[string]>, clock: FakeClock, fs?: FileSystem) {
  const watcher = new ResilientWatcher(path, { clock, fs, backend: 'poll', resyncIntervalMs: 0, ...options });
  onTestFinished(() => watcher.close());
  const reported: string[][] = [];
  watcher.on('change', ({ current }) => reported.push(namesIn(current.files.keys())));
  return { watcher, reported };
}

/** Before each call with this name for this path, as often as is said. */
function before(name: string, path: string, times: number, act: () => void) {
  let left = times;
  return ({ args, make }: Called): unknown => {
    if (String(args[0]) === path && left > 0) {
      left -= 1;
      act();
    }
    return make();
  };
}

test.each(['a directory', 'a tree'])(
  '%s is reported with a file that is renamed over while it is listed, which the listing misses',
  async (kind) => {
    const { directory, busy, replace, ...rest } = scene();
    let listings = 0;
    const fs = fsWith({
      readdir: ({ args, make }) => {
        const entries = make() as { name: string }[];
        if (String(args[0]) !== directory || (listings += 1) > 3) return entries;
        replace();
        return entries.filter(({ name }) => name !== 'busy');
      },
    });
    const target = TARGETS[kind]?.({ directory, busy, replace, ...rest }) ?? [directory, {}];
    const { watcher, reported } = watch(target, new FakeClock(Date.now()), fs);
    await watcher.start();
    expect(reported).toEqual([['busy', 'other']]);
    listings = 0;
    await watcher.check();
    expect(reported).toHaveLength(1);
    listings = 0;
    const { files } = await readVolume(directory, { fs });
    expect(namesIn(files.keys())).toEqual(['busy', 'other']);
  },
);

test.each(Object.entries(TARGETS))(
  '%s is reported with a file that is renamed over between the two requests for it to a file server',
  async (_, targetIn) => {
    const place = scene();
    let left = 2;
    const lstat = ({ args, make }: Called): unknown =>
      String(args[0]) === place.busy && (left -= 1) >= 0 ? undefined : make();
    const fs = fsWith({ lstat }, 'remote');
    const target = targetIn(place);
    const { watcher, reported } = watch(target, new FakeClock(Date.now()), fs);
    await watcher.start();
    const names = target[0] === place.busy ? ['busy'] : ['busy', 'other'];
    expect(reported).toEqual([names]);
    left = 2;
    const { files } = await readVolume(place.directory, { fs });
    expect(namesIn(files.keys())).toEqual(['busy', 'other']);
  },
);

test.each(Object.entries(TARGETS))(
  '%s is reported at once with a file that is replaced after its directory was looked at',
  async (_, targetIn) => {
    const place = scene();
    const fs = fsWith({ lstat: before('lstat', place.busy, 1, place.replace) });
    const clock = new FakeClock(Date.now());
    const { watcher, reported } = watch(targetIn(place), clock, fs);
    const started = watcher.start().catch(() => undefined);
    await clock.advance(10);
    await watcher.idle();
    expect(reported).toHaveLength(1);
    await started;
  },
);

/** Starts a watcher, and lets time pass until it has started. `act` is called before and after every 10 ms. */
async function startWhile(act: (count: number) => void, place: Scene, kind: string, maxSettleMs: number) {
  const clock = new FakeClock(Date.now());
  const [path, options] = TARGETS[kind]?.(place) ?? ['', {}];
  const { watcher, reported } = watch([path, { ...options, maxSettleMs }], clock);
  const state = { hasStarted: false };
  void watcher.start().then(() => (state.hasStarted = true));
  for (let count = 0; !state.hasStarted && count < 100; count += 1) {
    await clock.advance(10);
    act(count);
    await clock.advance(10);
  }
  expect(state.hasStarted).toBe(true);
  return { clock, reported, startMs: clock.monotonic() };
}

test.each(['a directory', 'a tree'])(
  '%s is first reported without a file that is being written in place, which comes when it is complete',
  async (kind) => {
    const place = scene();
    const write = (count: number): void => {
      appendFileSync(place.busy, ' and more');
      writeFileSync(join(place.directory, `later-${count}`), 'text');
    };
    write(0);
    const { clock, reported, startMs } = await startWhile(write, place, kind, 10_000);
    expect(reported[0]).toContain('other');
    expect(reported[0]).not.toContain('busy');
    expect(startMs).toBeLessThan(200);
    for (let count = 0; count < 100; count += 1) await clock.advance(10);
    expect(reported.at(-1)).toContain('busy');
  },
);

test('a directory whose only file is being written is first reported without any file', async () => {
  const place = scene();
  rmSync(place.other);
  const write = (): void => appendFileSync(place.busy, ' and more');
  write();
  const { reported, startMs } = await startWhile(write, place, 'a directory', 10_000);
  expect(reported).toEqual([[]]);
  expect(startMs).toBeLessThan(200);
});

test('a group is first reported whole: it waits for a file that is written all the time, and not for ever', async () => {
  const place = scene();
  const write = (): void => appendFileSync(place.busy, ' and more');
  write();
  const { reported, startMs } = await startWhile(write, place, 'a group', 400);
  expect(reported[0]).toEqual(['busy', 'other']);
  expect(startMs).toBeLessThan(1_000);
});

test('a volume that is written in place is in no first report in part, when a file from before it is due', async () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'new'), 'text');
  const volume = new KubeletVolume(join(root, 'volume'));
  let isBusy = true;
  const fs = fsWith({
    read({ make }) {
      const answer = make();
      if (isBusy && existsSync(volume.path('busy'))) appendFileSync(volume.path('busy'), '.');
      return answer;
    },
  });
  const clock = new FakeClock(Date.now());
  const backend = new ScriptedBackend();
  const { watcher, reported } = watch([root, { recursive: true, backend, settleMs: 50 }], clock, fs);
  const started = watcher.start();
  const looks = (): number => watcher.status().checks;
  await expect.poll(looks).toBeGreaterThan(0);
  await clock.advance(20);
  const before = looks();
  volume.publish({ busy: 'text', whole: 'text' });
  backend.hint();
  await expect.poll(looks).toBeGreaterThan(before);
  await clock.advance(30);
  await started;
  expect(reported).toEqual([['new']]);
  isBusy = false;
  await watcher.check();
  expect(reported).toEqual([['new'], ['busy', 'new', 'whole']]);
});

test.each(Object.keys(TARGETS))(
  '%s is first reported with a file that is replaced all the time, however fast, and does not wait for the end of that',
  async (kind) => {
    const place = scene();
    const next = join(temporaryDirectory(), 'next');
    const replace = (count: number): void => {
      writeFileSync(next, `version ${count}`);
      renameSync(next, place.busy);
    };
    replace(0);
    const { reported, startMs } = await startWhile(replace, place, kind, 10_000);
    expect(reported[0]).toContain('busy');
    expect(startMs).toBeLessThan(1_000);
  },
);

test('a file that is replaced all the time is first reported after maxSettleMs, if that is short', async () => {
  const place = scene();
  const now = BigInt(Date.now()) * 1_000_000n;
  let version = 0n;
  const replace = (): void => {
    version += 1n;
    const next = join(temporaryDirectory(), 'next');
    writeFileSync(next, `version ${version}`);
    renameSync(next, place.busy);
  };
  /** Each version was written and renamed in one tick. */
  const inTicks = (stat: BigIntStats): void => {
    if (!stat.isFile() || stat.size === 4n) return;
    const changedNs = now + version * 10_000_000n;
    Object.assign(stat, {
      birthtimeNs: changedNs,
      mtimeNs: changedNs,
      ctimeNs: changedNs,
      atimeNs: changedNs,
    });
  };
  replace();
  const [backend, clock] = [new ScriptedBackend(), new FakeClock(Date.now())];
  const options = { backend, settleMs: 50, maxSettleMs: 100 };
  const { watcher, reported } = watch([place.directory, options], clock, fsWith(statsWith(inTicks)));
  const started = watcher.start();
  const looks = (): number => watcher.status().checks;
  await expect.poll(looks).toBeGreaterThan(0);
  for (let waitedMs = 0; waitedMs < 120; waitedMs += 20) {
    await clock.advance(20);
    replace();
    await watcher.idle();
  }
  expect(reported).toEqual([['busy', 'other']]);
  await started;
});

test('a file is in the first report that has the number and time of creation of one that it followed in one tick', async () => {
  const { directory, busy } = scene();
  const now = BigInt(Date.now()) * 1_000_000n;
  /** Two versions have one number and time of creation; the second one was written in the next tick. */
  const inTicks = (stat: BigIntStats): void => {
    if (!stat.isFile() || stat.size < 10n) return;
    const birthtimeNs = now + 10_000_000n * (stat.size / 2n);
    const changedNs = birthtimeNs + 4_000_000n * (stat.size % 2n);
    Object.assign(stat, { ino: 1n, birthtimeNs, mtimeNs: changedNs, ctimeNs: changedNs });
  };
  writeFileSync(busy, '.'.repeat(10));
  const [backend, clock] = [new ScriptedBackend(), new FakeClock(Date.now())];
  const { watcher, reported } = watch([directory, { backend }], clock, fsWith(statsWith(inTicks)));
  const started = watcher.start();
  const looks = (): number => watcher.status().checks;
  for (let size = 11; size < 16; size += 1) {
    await expect.poll(looks).toBe(size - 10);
    await clock.advance(20);
    writeFileSync(busy, '.'.repeat(size));
    backend.hint();
  }
  await expect.poll(looks).toBe(6);
  await clock.advance(50);
  await started;
  expect(reported).toEqual([['busy', 'other']]);
});

test('a busy log does not delay the other files of a directory whose link is retargeted', async () => {
  const scene = new ScriptedScene();
  for (const directory of ['r1', 'r2']) {
    mkdirSync(scene.at(directory));
    for (const name of ['a', 'log', `in-${directory}`])
      writeFileSync(scene.at(`${directory}/${name}`), directory);
  }
  symlinkSync('r1', scene.at('current'));
  await scene.watch(scene.at('current'));
  scene.takeChanges();
  symlinkSync('r2', scene.at('next'));
  renameSync(scene.at('next'), scene.at('current'));
  const later = Date.now() / 1_000 + 1;
  for (let count = 0; count < 10; count += 1) {
    appendFileSync(scene.at('r2/log'), '.');
    utimesSync(scene.at('r2/log'), later, later + count);
    await scene.hint(scene.at(count === 0 ? 'current' : 'r2/log'));
    await scene.pass(20);
  }
  expect(scene.takeChanges()).toMatchObject([{ keys: '+in-r2 ~a -in-r1', files: { a: 'r2' } }]);
  await scene.pass(50);
  expect(scene.takeChanges()).toMatchObject([{ keys: '+ ~log -', files: { log: 'r2..........' } }]);
});
