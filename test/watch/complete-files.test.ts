/** Files that are created and written in place: never reported before they are whole, whatever else happens. */
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs';

import { ResilientWatcher, type Change } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { fsWith, statsWith } from '../support/intercepted-fs.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

async function watch(scene: ScriptedScene, path: string, options: SceneOptions = {}): Promise<void> {
  await scene.watch(scene.at(path), options);
  scene.changes.length = 0;
}

/** What was reported since the last call: the files that differ and their text. */
function reports({ changes }: ScriptedScene): string[] {
  return changes.splice(0).map(({ current, added, changed, removed }) => {
    const text = (key: string): string => `${key}=${String(current.files.get(key)?.content)}`;
    return [...[...added, ...changed].map(text), ...removed.map((key) => `-${key}`)].sort().join(' ');
  });
}

test('a file that was renamed into place is reported at once, if that shows', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('a'));
  writeFileSync(scene.at('a/old'), 'old');
  await watch(scene, 'a', {});
  await scene.watcher.check();
  for (const name of ['new', 'old']) {
    writeFileSync(scene.at('next'), 'whole');
    // Renamed after its last write, and not in the same tick.
    utimesSync(scene.at('next'), 1, 1);
    renameSync(scene.at('next'), scene.at(`a/${name}`));
    scene.backend.hint(scene.at(`a/${name}`));
    await scene.pass(5);
    expect(reports(scene)).toEqual([`${name}=whole`]);
  }
});

test('a file that is removed after a chmod does not count as renamed', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'old');
  let isNew = false;
  let isRead = false;
  const fs = fsWith({
    each: ({ name, args, make }) => {
      if (name === 'read') isRead = isNew;
      if (name !== 'lstat' || args[0] !== scene.root || !isRead) return make();
      [isNew, isRead] = [false, false];
      rmSync(scene.file);
      writeFileSync(scene.file, 'whole');
      return make();
    },
  });
  await watch(scene, 'app.yaml', { fs });
  rmSync(scene.file);
  writeFileSync(scene.file, 'half');
  scene.changeMode(scene.file);
  isNew = true;
  await scene.hint();
  expect(isNew).toBe(false);
  expect(reports(scene)).toEqual([]);
  await scene.settle();
  expect(scene.changes.map(({ current }) => String(current.content))).toEqual(['whole']);
});

/** When a new file was last written, its directory was changed, and its inode was, ms. */
test.each([
  ['was renamed after its last write counts as whole', 1, 3, 3],
  ['was given its mode does not count as whole', 2, 1, 3],
  ['was given its mode at once does not count as whole', 2, 2, 2.5],
  ['was given its mode after another was created does not count as whole', 1, 2, 9],
])('a new file that %s', async (what, written, listed, changed) => {
  const scene = new ScriptedScene();
  const now = Date.now();
  const ns = (ms: number): bigint => BigInt((now + ms) * 1e6);
  const stats = statsWith((stat, path) => {
    if (stat.isFile()) [stat.mtimeNs, stat.ctimeNs] = [ns(written), ns(changed)];
    if (path === scene.root) stat.mtimeNs = ns(listed);
  });
  await watch(scene, 'app.yaml', { fs: fsWith(stats), missingGraceMs: 0 });
  writeFileSync(scene.file, 'text');
  await scene.hint();
  const atOnce = reports(scene);
  await scene.settle();
  const isWhole = !what.includes('not');
  expect([atOnce, reports(scene)]).toEqual(isWhole ? [['app.yaml=text'], []] : [[], ['app.yaml=text']]);
});

test('a file behind two links is complete if it was written before the one that was retargeted last', async () => {
  const scene = new ScriptedScene();
  for (const name of ['old', 'new']) {
    mkdirSync(scene.at(name));
    writeFileSync(scene.at(`${name}.txt`), name);
    utimesSync(scene.at(`${name}.txt`), 1, 1);
    symlinkSync(`../${name}.txt`, scene.at(`${name}/file`));
  }
  symlinkSync('old', scene.at('current'));
  const late = statsWith((stat, path) => {
    // This link is older than the file that it leads to, which was not renamed either.
    if (path === scene.at('new/file')) stat.ctimeNs = 1n;
    if (path === scene.root) stat.mtimeNs = 1n;
  });
  await scene.watch(scene.at('current/file'), { fs: fsWith(late) });
  await scene.reports('old');
  unlinkSync(scene.at('current'));
  symlinkSync('new', scene.at('current'));
  await scene.hint();
  expect(scene.reported).toEqual(['old', 'new']);
});

test('links on another device, whose clock is ahead, do not count before those on the device of a file', async () => {
  const scene = new ScriptedScene();
  mkdirSync(scene.at('tree'));
  for (const name of ['old', 'new']) {
    mkdirSync(scene.at(name));
    writeFileSync(scene.at(`${name}.txt`), name);
    utimesSync(scene.at(`${name}.txt`), 1, 1);
    symlinkSync(`../${name}.txt`, scene.at(`${name}/file`));
  }
  symlinkSync('../old', scene.at('tree/current'));
  const stats = statsWith((stat, path) => {
    if (path === scene.at('tree/current')) {
      stat.dev += 1n;
      stat.ctimeNs += 3_600_000_000_000n;
    }
    // The file was not renamed.
    if (path === scene.root) stat.mtimeNs = 1n;
  });
  await watch(scene, 'tree', { recursive: { followLinks: true }, fs: fsWith(stats) });
  unlinkSync(scene.at('tree/current'));
  symlinkSync('../new', scene.at('tree/current'));
  await scene.hint();
  expect(reports(scene)).toEqual(['current/file=new']);
});

/** Lets a clock be ahead, while no timer has fired. Returns how to set by how much, ms. */
function ahead({ clock }: ScriptedScene): (ms: number) => void {
  let aheadMs = 0;
  Object.assign(clock, { monotonic: () => FakeClock.prototype.monotonic.call(clock) + aheadMs });
  return (ms) => void (aheadMs = ms);
}

test('how long the machine has been up says nothing about the age of a file', async () => {
  const scene = new ScriptedScene();
  ahead(scene)(30 * 86_400_000);
  writeFileSync(scene.file, 'half');
  scene.clock.schedule(() => appendFileSync(scene.file, ' and half'), 30);
  await scene.watch(scene.file, { settleMs: 50 });
  expect(scene.changes.map(({ current }) => String(current.content))).toEqual(['half and half']);
});

test('while its timer is late, a look for another event does not report a file as it was before its last write', async () => {
  const scene = new ScriptedScene();
  const setAhead = ahead(scene);
  scene.writeOld('d', ['a', 'b']);
  await watch(scene, 'd', { settleMs: 50, recursive: true });
  writeFileSync(scene.at('d/a'), 'half');
  await scene.hint(scene.at('d/a'));
  // Its event is still on its way.
  appendFileSync(scene.at('d/a'), ' and half');
  setAhead(60);
  await scene.hint(scene.at('d/b'));
  expect(reports(scene)).toEqual([]);
  await scene.settle();
  expect(reports(scene)).toEqual(['a=half and half']);
});

test('while its timer is late, a look for another event reports a key with the others of its volume', async () => {
  const scene = new ScriptedScene();
  const setAhead = ahead(scene);
  mkdirSync(scene.at('v/..1'), { recursive: true });
  for (const key of ['a', 'b']) writeFileSync(scene.at(`v/..1/${key}`), '1');
  mkdirSync(scene.at('d'));
  for (const key of ['a', 'b']) symlinkSync(`../v/${key}`, scene.at(`d/${key}`));
  await watch(scene, 'd', { settleMs: 50, recursive: true });
  symlinkSync('..1', scene.at('v/..data'));
  symlinkSync('..data/a', scene.at('v/a'));
  await scene.hint();
  symlinkSync('..data/b', scene.at('v/b'));
  setAhead(60);
  await scene.hint(scene.at('d/other'));
  await scene.settle();
  expect(reports(scene)).toEqual(['a=1 b=1']);
});

test('an empty file that gives way to one that is being written is not told half by start()', async () => {
  const scene = new ScriptedScene();
  const { clock, backend, file } = scene;
  writeFileSync(file, '');
  clock.schedule(() => {
    symlinkSync('next', scene.at('link'));
    renameSync(scene.at('link'), file);
    writeFileSync(scene.at('next'), 'half');
    // Later than the link, whatever the tick of the clock.
    utimesSync(scene.at('next'), new Date(), new Date(Date.now() + 1_000));
    backend.hint();
  }, 600);
  clock.schedule(() => appendFileSync(scene.at('next'), ' and half'), 630);
  await scene.watch(file, { settleMs: 50, missingGraceMs: 1_000 });
  expect(scene.changes.map(({ current }) => String(current.content))).toEqual(['half and half']);
});

test('what is written after a file was renamed is not told under its old name', async () => {
  const scene = new ScriptedScene();
  let isRenamed = false;
  const fs = fsWith({
    each: ({ name, args: [path], make }) => {
      if (name !== 'open' || path !== scene.at('d/f.tmp') || isRenamed) return;
      const descriptor = make();
      isRenamed = true;
      renameSync(scene.at('d/f.tmp'), scene.at('d/f'));
      writeFileSync(scene.at('d/f'), 'other text');
      return descriptor;
    },
  });
  mkdirSync(scene.at('d'));
  await watch(scene, 'd', { fs, settleMs: 0 });
  writeFileSync(scene.at('d/f.tmp'), 'text');
  await scene.hint();
  expect(isRenamed).toBe(true);
  await scene.settle();
  expect(reports(scene)).toEqual(['f=other text']);
});

test('a change that has waited has the cause of the look that found it first', async () => {
  const scene = new ScriptedScene();
  scene.writeOld('d', ['a']);
  await watch(scene, 'd', { settleMs: 50 });
  writeFileSync(scene.at('d/a'), 'half');
  await scene.hint();
  writeFileSync(scene.at('next'), 'whole');
  utimesSync(scene.at('next'), 1, 1);
  renameSync(scene.at('next'), scene.at('d/a'));
  await scene.watcher.check();
  expect(scene.changes.map(({ cause }) => cause)).toEqual(['scripted']);
});

/** A watcher that has looked once, and for whose start no time passes by itself. */
async function startedIn({ backend, clock }: ScriptedScene, path: string) {
  const watcher = new ResilientWatcher(path, { backend, clock, resyncIntervalMs: 0 });
  onTestFinished(() => watcher.close());
  const changes: Change[] = [];
  watcher.on('change', (change) => changes.push(change));
  const started = watcher.start();
  await expect.poll(() => watcher.status().checks).toBeGreaterThan(0);
  return { watcher, changes, started };
}

test('a log that is rotated during a long start is not told while its next file is half written', async () => {
  const scene = new ScriptedScene();
  writeFileSync(scene.file, 'log');
  const { watcher, changes, started } = await startedIn(scene, scene.file);
  const look = async (): Promise<void> => {
    scene.backend.hint();
    await watcher.idle();
    await scene.clock.advance(20);
    await watcher.idle();
  };
  // Longer than a file is waited for that is only replaced.
  for (let waitedMs = 0; waitedMs < 600; waitedMs += 20) {
    appendFileSync(scene.file, '.');
    await look();
  }
  renameSync(scene.file, scene.at('log.1'));
  writeFileSync(scene.file, 'half');
  await look();
  appendFileSync(scene.file, ' and the rest');
  await look();
  await scene.clock.advance(1_000);
  await started;
  expect(changes.map(({ current }) => String(current.content))).toEqual(['half and the rest']);
});

test('what appears after the first report has another cause than the start, also without a backend', async () => {
  const scene = new ScriptedScene();
  scene.writeOld('d', ['a']);
  writeFileSync(scene.at('d/busy'), '.');
  // So that a write is not taken for a replacement in the tick of its creation.
  scene.changeMode(scene.at('d/busy'));
  const { backend, clock } = scene;
  // With one, the first look is followed by another, of what it listens to now.
  backend.refuse(...Array.from({ length: 100 }, () => new Error('no')));
  const { changes, started } = await startedIn(scene, scene.at('d'));
  appendFileSync(scene.at('d/busy'), '.');
  await clock.advance(50);
  await started;
  // No event tells of it before the next look.
  scene.writeOld('e', ['new']);
  renameSync(scene.at('e/new'), scene.at('d/new'));
  appendFileSync(scene.at('d/busy'), '.');
  await clock.advance(50);
  appendFileSync(scene.at('d/busy'), '.');
  await clock.advance(50);
  await clock.advance(200);
  const told = changes.map(({ cause, added }) => `${added.join()} by ${cause}`);
  expect(told).toEqual(['a by start', 'new by poll', 'busy by start']);
});

test('what is written in place behind a link waits until it is quiet, also if the clock was set back since it was linked', async () => {
  const scene = new ScriptedScene();
  scene.writeOld('d', ['f']);
  scene.relink('link', 'd/f');
  const anHour = 3_600_000_000_000n;
  const laterLink = (stat: BigIntStats): void => {
    if (stat.isSymbolicLink()) Object.assign(stat, { ctimeNs: stat.ctimeNs + anHour });
  };
  await watch(scene, 'link', { fs: fsWith(statsWith(laterLink)) });
  writeFileSync(scene.at('d/f'), 'half');
  await scene.hint();
  writeFileSync(scene.at('d/f'), 'half and the rest');
  await scene.settle();
  expect(reports(scene)).toEqual(['link=half and the rest']);
});
