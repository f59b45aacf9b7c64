/**
 * Several watchers in one process, one of them on a path that hangs, cannot be read or fails: all others are told what
 * they would be told without it, and so is the rest of a tree that contains it.
 */
import { constants } from 'node:fs';

import { ResilientWatcher, type ResilientWatcherOptions } from '../../../src/index.js';
import type { Fs } from '../actors/calls.js';
import { KUBELET, publish } from '../actors/volumes.js';
import { historyOf, type History } from '../history.js';
import { checkAllIsTold, checkReports } from '../invariants.js';
import { KINDS, type Scene } from '../kinds.js';
import { Errno } from '../machine/machine.js';
import type { View } from '../views.js';
import { Violation, type World } from '../world.js';
import { Watching } from './watching.js';

const PATIENCE = { settleMs: 50, missingGraceMs: 500 };

/** Two resyncs, and what settles after them, ms. */
const REST_MS = 12_000;

const BAD = '/m/bad';

/** What is wrong with the path. */
const HARMS = ['hangs', 'is unreadable', 'fails'] as const;

/** A volume with the key `f` that becomes bad. Returns what makes it so, and what ends that. */
function badVolume(world: World, harm: (typeof HARMS)[number]): { begin: () => void; end: () => void } {
  const { machine, library } = world;
  const { fs } = machine.process();
  fs.mkdirSync(BAD, 0o755);
  const mount = harm === 'hangs' ? machine.mount(BAD, { type: 'nfs4' }) : undefined;
  const at = { fs, world, directory: BAD, manner: KUBELET };
  Array.from(publish(at, '..2030_01_01_00_00_00.1', new Map([['f', 'bad']])));
  // Root may read everything.
  library.uid = library.gid = 1_000;
  const set = (isBad: boolean): void => {
    world.note(BAD, isBad ? harm : 'recovers');
    if (mount) mount.isHung = isBad;
    else if (harm === 'is unreadable') fs.chmodSync(BAD, isBad ? 0 : 0o755);
    else {
      const { before } = library;
      library.before = (call, path) => {
        before(call, path);
        if (isBad && path.startsWith(BAD)) throw new Errno('EIO');
      };
    }
  };
  return {
    begin: () => set(true),
    end() {
      set(false);
      if (mount) machine.unmount(mount, { isLazy: true });
    },
  };
}

interface Followed {
  readonly history: History;
  readonly watching: Watching;
}

/** What is told of a file that only root may read, such as a template that is not finished. */
const NOT_READ = 'stat:';

/** Watches a scene, of which only what is not bad is compared. */
function follow(world: World, scene: Scene): Followed {
  const { uid } = world.library;
  const reader = world.machine.process({ uid }).fs;
  const mayRead = (path: string): boolean => {
    try {
      reader.closeSync(reader.openSync(path, constants.O_RDONLY));
      return true;
    } catch (error) {
      // A key of a volume may have no link yet.
      return (error as NodeJS.ErrnoException).code !== 'EACCES';
    }
  };
  const see = (fs: Fs): View => {
    const root = String(scene.path);
    const isDirectory = fs.inodeAt(root)?.kind === 'directory';
    const all = [...scene.see(fs)].filter(([key]) => !key.startsWith('bad/'));
    return new Map(
      all.map(([key, text]) => [key, mayRead(isDirectory ? `${root}/${key}` : root) ? text : NOT_READ]),
    );
  };
  const history = historyOf(world, see, scene.unitOf);
  const options = world.isLossy ? { ...scene.options, resyncIntervalMs: 5_000 } : scene.options;
  return { history, watching: new Watching(world, { ...scene, options }) };
}

export async function neighbors(world: World): Promise<void> {
  const { choices, machine } = world;
  machine.process().fs.mkdirSync('/m', 0o755);
  const harm = choices.oneOf(HARMS);
  const { begin, end } = badVolume(world, harm);
  // What waits for a call that hangs is the look at the whole tree.
  const others = harm === 'hangs' ? ['file', 'volume'] : ['file', 'volume', 'tree'];
  const good = KINDS[choices.oneOf(others)];
  if (!good) throw new Error('There is no such kind');
  const followed = follow(world, good(world));
  const fs = world.library.fs as unknown as ResilientWatcherOptions['fs'];
  const paths = [BAD, `${BAD}/f`, [`${BAD}/f`, `${BAD}/g`]];
  const bad = paths.map((path) => new ResilientWatcher(path, { fs, random: world.random, backend: 'fs' }));
  const starts: Promise<unknown>[] = [];
  const start = (watcher: { start: () => Promise<unknown> }): void => void starts.push(watcher.start());
  try {
    const isBadAtOnce = choices.choose(2) === 0;
    if (isBadAtOnce) begin();
    for (const watcher of bad) start(watcher);
    const started = world.sleep(choices.oneOf([0, 10, 400])).then(() => followed.watching.start());
    if (!isBadAtOnce) void world.sleep(choices.oneOf([1, 30, 300])).then(begin);
    await world.run(REST_MS);
    await world.through(started, 'start() beside a bad path');
    followed.watching.check();
    const { history, watching } = followed;
    try {
      if (!world.canFail || good === KINDS['volume'])
        checkReports(history, watching.reports.map(withoutBad), watching.since, {
          ...PATIENCE,
          areClocksFar: world.areClocksFar,
        });
      checkAllIsTold(history, watching.reports.map(withoutBad).at(-1));
    } catch (error) {
      throw error instanceof Violation
        ? new Violation(12, `beside a path that ${harm}: ${error.message}`)
        : error;
    }
  } finally {
    const all = [followed.watching.close(), ...bad.map((watcher) => watcher.close())];
    await world.through(Promise.all(all), 'close()');
    end();
    await world.through(Promise.allSettled(starts), 'start() of a bad path');
    await world.rest(3_000);
  }
}

/** Without what is bad. What was not read is compared as such, without inode and times. */
function withoutBad<Report extends { readonly units: ReadonlyMap<string, string> }>(report: Report): Report {
  const units = [...report.units].filter(([unit]) => !unit.startsWith(BAD));
  return {
    ...report,
    units: new Map(units.map(([unit, text]) => [unit, text.replace(/=stat:\S*/g, `=${NOT_READ}`)])),
  };
}
