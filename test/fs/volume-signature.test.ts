/** What the resync of a key finds, although it makes no call of its own in most turns. */
import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import fc from 'fast-check';
import { nodeFileSystem, ResilientWatcher, type FileSystemCalls } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { systemClock } from '../../src/core/clock.js';
import { makeCall, runSync } from '../../src/fs/effects.js';
import { identityOf } from '../../src/fs/file-identity.js';
import { COARSEST_TIMESTAMP_MS, type SwapReader, type Turn } from '../../src/fs/observation.js';
import { PathTarget } from '../../src/fs/targets/path-target.js';
import { volumeSignature } from '../../src/fs/volume-signature.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const RESYNC_MS = 5_000;

const LIMITS = { maxContentBytes: 1_000, maxTotalBytes: 10_000, maxFiles: 100 };

const REVISIONS = ['..2026_01_01_00_00_00.1', '..2026_01_01_00_00_00.2'] as const;

/** A turn in which the files of other watchers are examined. */
const turn: Turn = {
  ask: (call, calls) => makeCall(call, calls),
  slices: 1e9,
  volume: volumeSignature,
};

/** Two paths to the keys of a volume, on a file system whose clock has ticks of this length. */
class TickingVolume {
  readonly root = temporaryDirectory();
  readonly directory = join(this.root, 'volume');
  /** A key of the volume, reached through a link outside of it. */
  readonly path = join(this.root, 'alias/key');
  readonly calls: FileSystemCalls;
  nowMs = 1_000_000;
  readonly #tickMs: number;
  /** When directories were changed, by inode number, ns. */
  readonly #changed = new Map<bigint, bigint>();
  #copies = 0;

  constructor(tickMs: number) {
    const { sync } = nodeFileSystem;
    this.#tickMs = tickMs;
    this.calls = {
      ...sync,
      lstat: (path) => {
        const stat = sync.lstat(path);
        if (stat.isFile()) return stat;
        const ns = this.#changed.get(stat.ino) ?? 0n;
        return Object.assign(stat, { ctimeNs: ns, mtimeNs: ns });
      },
    };
    mkdirSync(this.directory);
    for (const revision of REVISIONS) {
      mkdirSync(join(this.directory, revision));
      for (const key of ['key', 'other']) writeFileSync(join(this.directory, revision, key), 'same');
      this.#hasChanged(join(this.directory, revision));
    }
    this.link('..data', REVISIONS[0]);
    this.link('key', '..data/key');
    symlinkSync('volume', join(this.root, 'alias'));
  }

  /** Replaces a link of the volume, in one step. */
  link(name: string, target: string): void {
    symlinkSync(target, join(this.directory, 'next'));
    renameSync(join(this.directory, 'next'), join(this.directory, name));
    this.#hasChanged(this.directory);
  }

  remove(name: string): void {
    rmSync(join(this.directory, name), { force: true });
    this.#hasChanged(this.directory);
  }

  /** Another directory with the same files takes its place. One that is mounted there does not change the one above. */
  replace(path: string, isMounted: boolean): void {
    const copy = this.#aside();
    cpSync(path, copy, { recursive: true, verbatimSymlinks: true });
    renameSync(path, this.#aside());
    renameSync(copy, path);
    this.#hasChanged(path);
    if (!isMounted) this.#hasChanged(join(path, '..'));
  }

  /** The directory moves, and a link to it takes its place. */
  moveBehindLink(path: string): void {
    const moved = this.#aside();
    renameSync(path, moved);
    symlinkSync(moved, path);
    this.#hasChanged(join(path, '..'));
  }

  /** Another file with the same content takes the place of the key's. */
  replaceFile(revision: string): void {
    const inside = join(this.directory, revision);
    writeFileSync(join(inside, 'next'), 'same');
    renameSync(join(inside, 'next'), join(inside, 'key'));
    this.#hasChanged(inside);
  }

  /** The path leads through a copy of the volume from now on. */
  retargetAlias(): void {
    const copy = this.#aside();
    cpSync(this.directory, copy, { recursive: true, verbatimSymlinks: true });
    rmSync(join(this.root, 'alias'));
    symlinkSync(copy, join(this.root, 'alias'));
  }

  /** The file that the path leads to. */
  whereItLeads(): string {
    const seen = runSync(new PathTarget(this.path, LIMITS).observe(), nodeFileSystem.sync);
    if (seen.kind !== 'found') return seen.kind;
    const { revision, realPath } = seen.snapshot;
    return `${revision} ${identityOf(nodeFileSystem.sync.lstat(realPath))}`;
  }

  #aside(): string {
    return join(this.root, `aside-${(this.#copies += 1)}`);
  }

  #hasChanged(directory: string): void {
    const { ino } = nodeFileSystem.sync.lstat(`${directory}/.`);
    this.#changed.set(ino, BigInt(Math.floor(this.nowMs / this.#tickMs) * this.#tickMs) * 1_000_000n);
  }
}

/** What is known of the key, as an `Observer` keeps it. */
class Known {
  readonly #volume: TickingVolume;
  #reader: SwapReader | undefined;

  constructor(volume: TickingVolume) {
    this.#volume = volume;
    this.observe();
  }

  observe(): void {
    const target = new PathTarget(this.#volume.path, LIMITS);
    const seen = runSync(target.observe(), this.#volume.calls);
    this.#reader = seen.kind === 'found' ? target.swapReader(seen) : undefined;
  }

  /** Whether a resync says that links and file are as they were observed. */
  stands(): boolean {
    try {
      const { calls, nowMs } = this.#volume;
      return this.#reader?.isUnchanged(calls, turn, nowMs) === true;
    } catch {
      return false;
    }
  }
}

/** Something that happens to the volume, by what does it. */
const moves: fc.Arbitrary<(volume: TickingVolume) => void> = fc.oneof(
  fc
    .record({
      name: fc.constantFrom('..data', 'key', 'unrelated'),
      target: fc.constantFrom(...REVISIONS, '..data/key', '..data/other'),
    })
    .map(({ name, target }) => shown(`link ${name} -> ${target}`, (volume) => volume.link(name, target))),
  fc.constantFrom('..data', 'key').map((name) => shown(`remove ${name}`, (volume) => volume.remove(name))),
  fc
    .record({ what: fc.constantFrom('.', ...REVISIONS), isMounted: fc.boolean() })
    .map(({ what, isMounted }) =>
      shown(`replace ${what} ${isMounted}`, (volume) =>
        volume.replace(join(volume.directory, what), isMounted),
      ),
    ),
  fc
    .constantFrom('.', ...REVISIONS)
    .map((what) => shown(`move ${what}`, (volume) => volume.moveBehindLink(join(volume.directory, what)))),
  fc
    .constantFrom(...REVISIONS)
    .map((revision) => shown(`replace the file of ${revision}`, (volume) => volume.replaceFile(revision))),
  fc.constant(shown('retarget the alias', (volume) => volume.retargetAlias())),
);

/** By its name in a counterexample. */
function shown(name: string, move: (volume: TickingVolume) => void): (volume: TickingVolume) => void {
  return Object.assign((volume: TickingVolume) => move(volume), { [fc.toStringMethod]: () => name });
}

/** Changes, the time before the resync that follows, and by how much the clock is set back before the one after that. */
const steps = fc.record({
  moves: fc.array(moves, { maxLength: 2 }),
  ms: fc.constantFrom(0, 1, 10, COARSEST_TIMESTAMP_MS - 1, COARSEST_TIMESTAMP_MS + 1, 5_000),
  setBackMs: fc.constantFrom(0, 0, 0, 10, 3_000, 60_000),
});

test('a resync that makes no call of its own finds every change of links and directories, however long a tick is', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 4, 1_000, COARSEST_TIMESTAMP_MS),
      fc.array(steps, { minLength: 2, maxLength: 15 }),
      (tickMs, script) => {
        const volume = new TickingVolume(tickMs);
        const known = new Known(volume);
        let before = volume.whereItLeads();
        const resync = (): void => {
          const now = volume.whereItLeads();
          if (known.stands()) expect(now).toBe(before);
          else known.observe();
          before = now;
        };
        volume.nowMs += 2 * COARSEST_TIMESTAMP_MS;
        resync();
        for (const { moves, ms, setBackMs } of script) {
          for (const move of moves) {
            try {
              move(volume);
            } catch (error) {
              // What an earlier one left is in the way.
              expect((error as { code?: string }).code).toMatch(/^E(EXIST|ISDIR|NOTDIR|NOENT|NOTEMPTY)$/);
            }
          }
          volume.nowMs += ms;
          resync();
          // A change in a tick that passes twice between two resyncs is found when the file is examined.
          volume.nowMs -= setBackMs;
          if (setBackMs > 0) resync();
        }
      },
    ),
    { numRuns: rounds(200, 1_500) },
  );
});

test('a change in a directory that was moved behind a link is found', () => {
  const volume = new TickingVolume(1);
  const known = new Known(volume);
  const resync = (): boolean => {
    volume.nowMs += 2 * COARSEST_TIMESTAMP_MS;
    return known.stands();
  };
  expect(resync()).toBe(true);
  volume.moveBehindLink(volume.directory);
  expect(resync()).toBe(true);
  volume.link('key', '..data/other');
  expect(resync()).toBe(false);
});

// Only on Linux is it known which file systems may be asked synchronously.
describe.skipIf(process.platform !== 'linux')('without any hint', () => {
  let root: string;
  let volume: KubeletVolume;
  let clock: FakeClock;
  let watchers: ResilientWatcher[];

  const filesOf = (text: string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`key-${index}`, `${index} ${text}`]));

  beforeEach(() => {
    root = temporaryDirectory();
    volume = new KubeletVolume(join(root, 'volume'));
    volume.publish(filesOf('old'));
    clock = new FakeClock();
    watchers = [];
    // Everything here is long ago, as it is in a service.
    vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() + 60_000);
  });

  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all(watchers.map((watcher) => watcher.close()));
  });

  async function watch(count: number): Promise<void> {
    const options = { backend: new ScriptedBackend(), clock, resyncIntervalMs: RESYNC_MS };
    watchers = Array.from(
      { length: count },
      (_, index) => new ResilientWatcher(volume.path(`key-${index}`), options),
    );
    await Promise.all(watchers.map((watcher) => watcher.start()));
    await resync();
    await resync();
    nextTick();
  }

  async function resync(): Promise<void> {
    await clock.advance(RESYNC_MS);
    await Promise.all(watchers.map((watcher) => watcher.idle()));
  }

  /** Until later changes have later timestamps than the last one. */
  function nextTick(): void {
    const { lstat } = nodeFileSystem.sync;
    const file = join(root, 'now');
    do writeFileSync(file, String(Math.random()));
    while (lstat(file).ctimeNs <= lstat(volume.directory).ctimeNs);
  }

  /** A link or a file of this key, or the whole volume, becomes something else. */
  const changes: Record<string, (key: string) => void> = {
    'a swap': () => volume.publish(filesOf('new')),
    'a link that leads elsewhere': (key) => {
      writeFileSync(join(root, 'elsewhere'), 'new');
      symlinkSync('../elsewhere', volume.path('next'));
      renameSync(volume.path('next'), volume.path(key));
    },
    'a file in the place of a link': (key) => {
      writeFileSync(join(root, 'elsewhere'), 'new');
      renameSync(join(root, 'elsewhere'), volume.path(key));
    },
    'another file in a published revision': (key) => {
      writeFileSync(join(root, 'elsewhere'), 'new');
      renameSync(join(root, 'elsewhere'), volume.path(`${volume.revision}/${key}`));
    },
    'another revision under the same name': (key) => {
      const revision = volume.path(String(volume.revision));
      cpSync(revision, join(root, 'copy'), { recursive: true });
      writeFileSync(join(root, 'copy', key), 'new');
      renameSync(revision, join(root, 'away'));
      renameSync(join(root, 'copy'), revision);
    },
    'another volume in its place': (key) => {
      cpSync(volume.directory, join(root, 'copy'), { recursive: true, verbatimSymlinks: true });
      writeFileSync(join(root, 'copy', String(volume.revision), key), 'new');
      renameSync(volume.directory, join(root, 'away'));
      renameSync(join(root, 'copy'), volume.directory);
    },
  };

  test.each(Object.keys(changes))(
    '%s is found by the first resync, for each of many watchers',
    async (change) => {
      await watch(250);
      for (const index of [0, 120, 249]) {
        changes[change]?.(`key-${index}`);
        nextTick();
        await resync();
        // What was not published by a swap is reported when it has settled.
        await clock.advance(1_000);
        await watchers[index]?.idle();
        expect(watchers[index]?.current?.content?.toString()).toMatch(/new$/);
        rmSync(join(root, 'away'), { recursive: true, force: true });
      }
    },
  );

  test('a link in whose place the same one comes is no change', async () => {
    await watch(250);
    const reported = vi.fn();
    for (const watcher of watchers) watcher.on('change', reported);
    symlinkSync('..data/key-7', volume.path('next'));
    renameSync(volume.path('next'), volume.path('key-7'));
    await resync();
    expect(reported).not.toHaveBeenCalled();
  });

  test('a write into a published revision is found by the first resync of one watcher, and of many in turn', async () => {
    await watch(1);
    writeFileSync(volume.path('key-0'), 'written');
    await resync();
    await resync();
    expect(watchers[0]?.current?.content?.toString()).toBe('written');
    await watchers[0]?.close();

    await watch(250);
    for (const index of [0, 120, 249]) writeFileSync(volume.path(`key-${index}`), 'written');
    // 100 of them in each turn, and then the time to settle.
    for (let turns = 0; turns < 3 + 1; turns += 1) await resync();
    for (const index of [0, 120, 249]) expect(watchers[index]?.current?.content?.toString()).toBe('written');
  });

  test('of many watchers no more than a part asks for a link or a file of its own', async () => {
    await watch(250);
    const asked = new Set<string>();
    for (const name of ['lstat', 'readlink'] as const) {
      const call = nodeFileSystem.sync[name] as (path: string) => never;
      vi.spyOn(nodeFileSystem.sync, name).mockImplementation((path) => {
        asked.add(basename(path));
        return call(path);
      });
    }
    await resync();
    const keys = [...asked].filter((name) => name.startsWith('key-'));
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.length).toBeLessThan(watchers.length);
    expect(asked).toContain('..data');
  });
});
