/**
 * Ten thousand random disturbances with faults, on real files and the kernel's own events. Time is fake: it passes when
 * the test advances it, so that years of waiting take a minute, and a slow machine changes nothing.
 *
 *     npm run test:soak
 *     SEED=123 npm run test:soak
 */
import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { isSealed } from '../kernel/programs/sealed.mjs';
import { inotifyWatches } from '../support/inotify.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { Chance } from './chance.js';
import { UnreliableBackend } from './unreliable-backend.js';
import { turn, World } from './world.js';

const OPERATIONS = 10_000;
/** So often, on average, everything calms down and is checked. */
const QUIET_ONE_IN = 12;

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32));

/** A watcher with the memory of what it reported; reopened now and then. */
class Watched {
  readonly path: string;
  readonly watcher: ResilientWatcher;
  /** Each reported content of a file, or what else was there. */
  readonly reported: string[] = [];
  readonly errors: Error[] = [];

  constructor(path: string, options: { clock: FakeClock; backend: UnreliableBackend; random: () => number }) {
    this.path = path;
    this.watcher = new ResilientWatcher(path, options);
    this.watcher.on('change', ({ current }) =>
      this.reported.push(current.kind === 'file' ? String(current.content) : current.kind),
    );
    this.watcher.on('error', (error) => this.errors.push(error));
    this.watcher.on('unreadable', ({ error }) => this.errors.push(error));
  }
}

test('the last report equals the disk, whatever happens', { timeout: 300_000 }, async () => {
  console.log(`SEED=${seed}`);
  const chance = new Chance(seed);
  const clock = new FakeClock();
  const backend = new UnreliableBackend(chance);
  const world = new World(temporaryDirectory(), chance, clock);
  const history: string[] = [];
  const open = async (path: string): Promise<Watched> => {
    const watched = new Watched(path, { clock, backend, random: chance.next });
    onTestFinished(() => watched.watcher.close());
    await watched.watcher.start();
    return watched;
  };
  // Two of each, so that they share.
  const all = await Promise.all([...world.targets, ...world.targets].map(open));
  const idle = async (): Promise<void> => {
    for (const { watcher } of all) await watcher.idle();
  };

  /** No faults, time for every restart, one resync tick, and time for what that leaves in pending. */
  const calmDown = async (): Promise<void> => {
    backend.faulty = false;
    while (all.some(({ watcher }) => watcher.state !== 'watching')) {
      await clock.advance(1_000);
      await idle();
    }
    for (const ms of [5_000, 600, 600]) {
      await clock.advance(ms);
      await idle();
    }
    backend.faulty = true;
  };

  const checkAll = (): void => {
    for (const { path, watcher, reported, errors } of all) {
      const disk = world.observe(path);
      const status = watcher.status();
      const why = `SEED=${seed}, ${path} after ${history.length}: … ${history.slice(-15).join(', ')}`;
      if (disk === 'unreadable') expect(status.target, why).toBe('unreadable');
      else expect(reported.at(-1) ?? 'missing', why).toBe(typeof disk === 'string' ? disk : disk.content);
      expect(
        reported.filter((text) => !['missing', 'directory'].includes(text) && !isSealed(text)),
        why,
      ).toEqual([]);
      expect(
        reported.filter((text, at) => at > 0 && text === reported[at - 1]),
        why,
      ).toEqual([]);
      expect(
        errors.filter(({ name }) => name !== 'TargetError'),
        why,
      ).toEqual([]);
      // What was checked need not be kept.
      reported.splice(0, reported.length - 1);
    }
    const needed = new Set(all.flatMap(({ watcher }) => watcher.status().watchedDirectories));
    expect(inotifyWatches(), `SEED=${seed} after ${history.length}`).toBe(needed.size);
    expect(backend.subscriptions).toBe(all.length);
  };

  const faults: Record<string, () => void | Promise<void>> = {
    'time passes': () => clock.advance(chance.pick([1, 20, 60, 600, 2_500, 6_000])),
    'a subscription dies': () => backend.fail('one'),
    'all subscriptions die': () => backend.fail('all'),
    async 'a watcher is replaced'() {
      const [old] = all.splice(chance.below(all.length), 1);
      if (!old) return;
      await old.watcher.close();
      all.push(await open(old.path));
    },
  };

  while (history.length < OPERATIONS) {
    if (chance.oneIn(5)) {
      const fault = chance.pick(Object.keys(faults));
      await faults[fault]?.();
      history.push(fault);
    } else history.push(await world.disturb());
    for (let turns = chance.below(4); turns > 0; turns -= 1) await turn();
    if (!chance.oneIn(QUIET_ONE_IN)) continue;
    await calmDown();
    checkAll();
  }
  await calmDown();
  checkAll();
  await Promise.all(all.map(({ watcher }) => watcher.close()));
  expect(inotifyWatches()).toBe(0);
  expect(backend.subscriptions).toBe(0);
  expect(clock.pending).toBe(0);
});
