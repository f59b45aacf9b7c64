/** The files of a large directory: as a Map, and shared with those before. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import fc from 'fast-check';
import { ResilientWatcher, type Change } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { run } from '../../src/core/scheduling/steps.js';
import { differing, FileMap } from '../../src/fs/file-map.js';
import type { FileSnapshot } from '../../src/fs/snapshot.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Stands for a file. */
const file = (size: number): FileSnapshot => ({ size }) as FileSnapshot;

const FILES = [1, 2, 3].map(file);

const changes = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 2_000 }).map(String), fc.constantFrom(undefined, ...FILES)),
  { minLength: 1, maxLength: 600, size: 'max' },
);

test('a map of files has what a Map has, in order, and says what differs from an earlier one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(changes, { maxLength: 6 }), async (rounds) => {
      let [map, expected] = [FileMap.empty, new Map<string, FileSnapshot>()];
      for (const round of rounds) {
        const [before, known] = [map, expected];
        expected = new Map(expected);
        for (const [key, each] of round) {
          if (each) expected.set(key, each);
          else expected.delete(key);
        }
        // In parts, because a slice may end in the middle.
        for (let at = 0; at < round.length; at += 50) map = await run(map.with(round.slice(at, at + 50)));
        const sorted = [...expected].sort(([one], [other]) => (one < other ? -1 : 1));
        expect([...map]).toEqual(sorted);
        expect([...map.keys()]).toEqual(sorted.map(([key]) => key));
        expect([...map.values()]).toEqual(sorted.map(([, each]) => each));
        expect(map.size).toBe(expected.size);
        for (const [key] of round) expect(map.get(key)).toBe(expected.get(key));
        expect([...before]).toHaveLength(known.size);
        expect(isDeepStrictEqual(before, map) && !isDeepStrictEqual(known, expected)).toBe(false);
        expect(JSON.stringify(map)).toBe(JSON.stringify({ size: map.size }));
        const byKey = (all: Iterable<readonly [string, ...unknown[]]>): unknown[] =>
          [...all].sort(([one], [other]) => (one < other ? -1 : 1));
        expect(byKey(differing(before, map))).toEqual(byKey(differing(known, expected)));
      }
    }),
    { numRuns: 30 },
  );
});

test('a directory that is renamed is one change of each of its files, and snapshots stay as they were', async () => {
  const directory = temporaryDirectory();
  const names = Array.from({ length: 1_500 }, (_, index) => `f${index}`);
  mkdirSync(`${directory}/before`);
  for (const name of names) writeFileSync(`${directory}/before/${name}`, name);
  const clock = new FakeClock(Date.now());
  const watcher = new ResilientWatcher(directory, {
    clock,
    recursive: true,
    backend: 'poll',
    resyncIntervalMs: 0,
  });
  onTestFinished(() => watcher.close());
  const reported: Change[] = [];
  watcher.on('change', (change) => reported.push(change));
  const state = { hasStarted: false };
  void watcher.start().then(() => (state.hasStarted = true));
  while (!state.hasStarted) await clock.advance(20);
  const first = reported.splice(0).at(-1)?.current.files;
  renameSync(`${directory}/before`, `${directory}/after`);
  rmSync(`${directory}/after/f7`);
  for (let count = 0; count < 40; count += 1) {
    await clock.advance(100);
    await watcher.idle();
  }
  const keys = (parent: string): string[] => names.map((name) => `${parent}/${name}`).sort();
  expect(reported.flatMap(({ removed }) => removed).sort()).toEqual(keys('before'));
  expect(reported.flatMap(({ added }) => added).sort()).toEqual(
    keys('after').filter((key) => key !== 'after/f7'),
  );
  expect([...(first?.keys() ?? [])]).toEqual(keys('before'));
  expect(String(first?.get('before/f7')?.content)).toBe('f7');
  expect(watcher.current?.files.has('after/f8')).toBe(true);
  expect(watcher.current?.files.size).toBe(1_499);
});
