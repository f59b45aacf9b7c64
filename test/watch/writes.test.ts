/** Files that are created and written in place: never reported before they are whole, whatever else happens. */
import { appendFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type Change, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** A watcher whose backend tells of writes where it watches, and what is reported. */
class Stage {
  readonly root = temporaryDirectory();
  readonly clock = new FakeClock();
  readonly backend = new ScriptedBackend('told', { reportsWrites: true });
  readonly #changes: Change[] = [];
  #watcher: ResilientWatcher | undefined;

  get watcher(): ResilientWatcher {
    if (!this.#watcher) throw new Error('watch() comes first');
    return this.#watcher;
  }

  at(path: string): string {
    return join(this.root, path);
  }

  async watch(path: string, options: ResilientWatcherOptions = {}): Promise<void> {
    const { clock, backend } = this;
    const settings = { clock, backend, resyncIntervalMs: 0, ...options };
    this.#watcher = new ResilientWatcher(this.at(path), settings);
    onTestFinished(() => this.watcher.close());
    this.watcher.on('change', (change) => this.#changes.push(change));
    await this.watcher.start();
    this.told();
  }

  /** Time passes, with all the looks it leads to. */
  async pass(ms: number): Promise<void> {
    await this.watcher.idle();
    for (let passed = 0; passed < ms; passed += 5) {
      await this.clock.advance(5);
      await this.watcher.idle();
    }
  }

  /** What was reported since this was last asked: the files that differ and their text. */
  told(): string[] {
    return this.#changes.splice(0).map(({ current, added, changed, removed }) => {
      const text = (key: string): string => `${key}=${String(current.files.get(key)?.content)}`;
      return [...[...added, ...changed].map(text), ...removed.map((key) => `-${key}`)].sort().join(' ');
    });
  }
}

test.each<[string, string, ResilientWatcherOptions]>([
  ['in a directory that is new in a tree', 'tree', { recursive: true }],
  ['whose directory was missing', 'tree/new/file', {}],
])('a file %s, half written before anybody watched there', async (_, target, options) => {
  const stage = new Stage();
  mkdirSync(stage.at('tree'));
  await stage.watch(target, options);
  mkdirSync(stage.at('tree/new'));
  writeFileSync(stage.at('tree/new/file'), 'half');
  stage.backend.hint(stage.at('tree/new'));
  await stage.pass(30);
  appendFileSync(stage.at('tree/new/file'), ' and half');
  stage.backend.written(stage.at('tree/new/file'));
  await stage.pass(30);
  expect(stage.told()).toEqual([]);
  await stage.pass(100);
  expect(stage.told()).toEqual([expect.stringMatching(/file=half and half$/)]);
});

test('a file of the same name that is reported in another directory meanwhile makes no difference', async () => {
  const stage = new Stage();
  for (const directory of ['a', 'b']) mkdirSync(stage.at(directory));
  await stage.watch('.', { recursive: true });
  writeFileSync(stage.at('b/x'), 'half');
  stage.backend.written(stage.at('b/x'));
  await stage.pass(5);
  writeFileSync(stage.at('next'), 'whole');
  renameSync(stage.at('next'), stage.at('a/x'));
  stage.backend.hint(stage.at('a/x'));
  for (let written = 0; written < 6; written += 1) {
    await stage.pass(20);
    appendFileSync(stage.at('b/x'), '.');
    // Once told is enough.
    if (written < 2) stage.backend.written(stage.at('b/x'));
    else stage.backend.hint(stage.at('b/x'));
  }
  expect(stage.told()).toEqual(['a/x=whole']);
  await stage.pass(100);
  expect(stage.told()).toEqual(['b/x=half......']);
});

test('a file that is begun during a check, where that has looked already', async () => {
  const stage = new Stage();
  for (let number = 0; number < 2_000; number += 1) writeFileSync(stage.at(`f${number}`), '');
  await stage.watch('.', { recursive: true });
  const looked = stage.watcher.check();
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  writeFileSync(stage.at('new'), 'half');
  stage.backend.written(stage.at('new'));
  await looked;
  await stage.pass(30);
  appendFileSync(stage.at('new'), ' and half');
  stage.backend.written(stage.at('new'));
  await stage.pass(200);
  expect(stage.told()).toEqual(['new=half and half']);
});

test('a file in a tree that a link leads to', async () => {
  const stage = new Stage();
  mkdirSync(stage.at('real'));
  symlinkSync('real', stage.at('current'));
  await stage.watch('current', { recursive: true });
  writeFileSync(stage.at('real/new'), 'half');
  stage.backend.written(stage.at('real/new'));
  await stage.pass(30);
  appendFileSync(stage.at('real/new'), ' and half');
  stage.backend.written(stage.at('real/new'));
  await stage.pass(200);
  expect(stage.told()).toEqual(['new=half and half']);
});

test.each([true, false])(
  'a link to a directory that is retargeted is one change, recursive: %s',
  async (recursive) => {
    const stage = new Stage();
    for (const [directory, files] of [
      ['r1', ['a', 'gone']],
      ['r2', ['a', 'new']],
    ] as const) {
      mkdirSync(stage.at(directory));
      for (const file of files) writeFileSync(stage.at(`${directory}/${file}`), directory);
    }
    symlinkSync('r1', stage.at('current'));
    await stage.watch('current', { recursive });
    symlinkSync('r2', stage.at('next'));
    renameSync(stage.at('next'), stage.at('current'));
    stage.backend.hint(stage.at('current'));
    await stage.pass(5);
    expect(stage.told()).toEqual(['-gone a=r2 new=r2']);
  },
);

test('a new file that was renamed into place, where it is told who writes, is reported at once', async () => {
  const stage = new Stage();
  mkdirSync(stage.at('a'));
  await stage.watch('.', { recursive: true });
  await stage.watcher.check();
  writeFileSync(stage.at('next'), 'whole');
  renameSync(stage.at('next'), stage.at('a/file'));
  stage.backend.hint(stage.at('a/file'));
  await stage.pass(5);
  expect(stage.told()).toEqual(['a/file=whole']);
});
