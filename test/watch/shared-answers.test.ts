/** What the looks of one event share, whatever backend reports it. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type Hint, type HintSink, type WatchBackend } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { nextTurn } from '../../src/core/event-loop.js';
import { interceptedFs } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const WATCHERS = 20;

/** Many watchers of one file, and a backend whose hints are sent by the test. */
async function scene(): Promise<{
  replace(content: string): void;
  readonly watchers: readonly ResilientWatcher[];
  /** Gives every watcher the hint. Returns how many lookups that led to. */
  hint(hint: Hint): number;
}> {
  const path = join(temporaryDirectory(), 'file');
  const replace = (content: string): void => {
    writeFileSync(`${path}~`, content);
    renameSync(`${path}~`, path);
  };
  replace('0');
  let lookups = 0;
  const fs = interceptedFs(({ name, make }) => {
    if (name === 'lstat') lookups += 1;
    return make();
  }, 'memory');
  const sinks: HintSink[] = [];
  const backend: WatchBackend = {
    name: 'mine',
    subscribe(sink) {
      sinks.push(sink);
      return { setDirectories: () => [], close: () => {} };
    },
  };
  // By this clock, the timestamps of the file stand for its content.
  const clock = new FakeClock(Date.now() + 60_000);
  const options = { backend, fs, clock, resyncIntervalMs: 0, settleMs: 0, persistent: false };
  const watchers = Array.from({ length: WATCHERS }, () => new ResilientWatcher(path, options));
  onTestFinished(async () => {
    await Promise.all(watchers.map((watcher) => watcher.close()));
  });
  for (const watcher of watchers) await watcher.start();
  return {
    replace,
    watchers,
    hint(hint) {
      const before = lookups;
      for (const sink of sinks) sink.hint(hint);
      return lookups - before;
    },
  };
}

test('watchers that hear of one event from a backend of your own look a path up once', async () => {
  const { hint } = await scene();
  await nextTurn();
  const alone = hint({});
  await nextTurn();
  expect(hint({ event: {} })).toBeLessThan(alone / 2);
});

test('a backend that gives the same object for every event hides no change', async () => {
  const { replace, watchers, hint } = await scene();
  const event = {};
  for (let version = 1; version <= 5; version += 1) {
    hint({ event });
    await nextTurn();
    replace(`${version}`);
    hint({ event });
    await Promise.all(watchers.map((watcher) => watcher.idle()));
    expect(watchers.map(({ current }) => String(current?.content))).toEqual(
      Array.from({ length: WATCHERS }, () => `${version}`),
    );
  }
});
