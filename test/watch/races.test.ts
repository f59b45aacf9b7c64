/** What happens between two system calls of a check. The file system is the real one; the moment is chosen. */
import { appendFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { faultyFileSystem } from '../support/faulty-file-system.js';
import type { CallName } from '../support/intercepted-fs.js';
import { ScriptedScene } from '../support/scripted-scene.js';

type Call = [name: CallName, path: string];

/** A scene, a watcher of it that has not been started, and something that happens between its calls. */
function race({ sync = true } = {}) {
  const scene = new ScriptedScene();
  const { root, volume, file, clock, backend, reported } = scene;
  const pending = new Set<{ when: (...call: Call) => boolean; action: () => void }>();
  const fs = faultyFileSystem(
    (name, [path]) => {
      for (const event of pending) {
        if (!event.when(name, String(path))) continue;
        pending.delete(event);
        event.action();
      }
    },
    { sync },
  );
  return {
    ...{ root, volume, file, clock, backend, reported },
    /** Does `action` once, right before the next call that `when` accepts. */
    before: (when: (...call: Call) => boolean, action: () => void) => void pending.add({ when, action }),
    create(path: string, options?: ResilientWatcherOptions): ResilientWatcher {
      const watcher = scene.create(path, { fs, resyncIntervalMs: 0, ...options });
      scene.record();
      return watcher;
    },
  };
}

test('a target that disappears after long writing still gets the whole grace period', async () => {
  const { file, clock, backend, reported, create } = race();
  writeFileSync(file, 'one');
  const watcher = create(file, { settleMs: 50, missingGraceMs: 500 });
  await watcher.start();
  const checkAfter = async (ms: number): Promise<void> => {
    backend.hint();
    await watcher.idle();
    await clock.advance(ms);
    await watcher.idle();
  };
  for (let length = 1; length <= 12; length += 1) {
    writeFileSync(file, '.'.repeat(length));
    await checkAfter(40);
  }
  unlinkSync(file);
  await checkAfter(499);
  expect(reported).toEqual(['one']);
  await checkAfter(1);
  expect(reported).toEqual(['one', '(missing)']);
});

test('hints before a check lead to one check, and hints during it to one more', async () => {
  const { volume, backend, before, create } = race({ sync: false });
  volume.publish({ key: 'v1' });
  const watcher = create(volume.path('key'));
  await watcher.start();
  const { checks } = watcher.status();
  const thrice = (): void => [1, 2, 3].forEach(() => backend.hint());
  before((name) => name === 'lstat', thrice);
  thrice();
  await watcher.idle();
  expect(watcher.status().checks).toBe(checks + 2);
});

test('a file that is never quiet is reported at the limit, as it is then', async () => {
  const { file, clock, backend, reported, create } = race();
  writeFileSync(file, '');
  const watcher = create(file, { settleMs: 50, maxSettleMs: 200 });
  await watcher.start();
  for (let line = 1; line <= 10; line += 1) {
    appendFileSync(file, `${line} `);
    backend.hint();
    await watcher.idle();
    await clock.advance(40);
    await watcher.idle();
  }
  expect(reported).toEqual(['', '1 2 3 4 5 ', '1 2 3 4 5 6 7 8 9 10 ']);
});

// Where a remote file system is mounted, no call is synchronous.
test.each([true, false])(
  'two writes within one tick of the file system clock are both seen, and a quiet file is not read again, synchronous: %s',
  async (sync) => {
    const { file, root } = race();
    const clock = new FakeClock();
    const backend = new ScriptedBackend();
    let opened = 0;
    // All of it happens within one tick.
    const stamp = BigInt(clock.now()) * 1_000_000n;
    const frozen = faultyFileSystem(
      (name, args) => {
        if (name === 'open' && args[0] === file) opened += 1;
        if (name !== 'fstat' && !(name === 'lstat' && args[0] === file)) return undefined;
        const stat =
          name === 'fstat'
            ? statSync(`/proc/self/fd/${String(args[0])}`, { bigint: true })
            : statSync(file, { bigint: true });
        return Object.assign(Object.create(Object.getPrototypeOf(stat) as object) as object, stat, {
          mtimeNs: stamp,
          ctimeNs: stamp,
        });
      },
      { sync },
    );
    writeFileSync(file, 'aaa');
    const watcher = new ResilientWatcher(file, {
      clock,
      backend,
      fs: frozen,
      settleMs: 0,
      resyncIntervalMs: 0,
    });
    onTestFinished(() => watcher.close());
    await watcher.start();
    for (const text of ['bbb', 'ccc', 'ddd']) {
      writeFileSync(file, text);
      backend.hint();
      await watcher.idle();
      expect(String(watcher.current?.content)).toBe(text);
    }
    await clock.advance(2_001);
    await watcher.check();
    expect(opened).toBeGreaterThan(0);
    opened = 0;
    writeFileSync(join(root, 'noise'), '');
    await watcher.check();
    await watcher.check();
    expect(opened).toBe(0);
  },
);
