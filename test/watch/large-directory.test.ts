/** Directories with thousands of entries: the event loop has its turns while they are listed. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { readVolume, ResilientWatcher } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { errno } from '../support/errno.js';
import { fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const FILES = 6_000;

/** Names that are so long that the directory is large on any file system. */
const nameOf = (index: number): string => `${'x'.repeat(40)}${index}`;

function largeDirectory(): string {
  const path = join(temporaryDirectory(), 'large');
  mkdirSync(path);
  for (let index = 0; index < FILES; index += 1) writeFileSync(join(path, nameOf(index)), 'x');
  return path;
}

/** A file system that does not list the large directory within one turn. */
const fs = fsWith({
  readdir({ args, isSynchronous, make }) {
    if (isSynchronous && basename(String(args[0])) === 'large') throw errno('EIO', String(args[0]));
    return make();
  },
});

const AT_ONCE = { settleMs: 0, missingGraceMs: 0 };

test.each([
  ['plain directory', {}],
  ['tree', { recursive: { content: false } }],
])('a large directory is listed without holding up the event loop: %s', async (_, options) => {
  const path = largeDirectory();
  const clock = new FakeClock();
  const watcher = new ResilientWatcher(path, { ...options, ...AT_ONCE, fs, clock });
  onTestFinished(() => watcher.close());
  const changes: string[][] = [];
  watcher.on('change', ({ added, removed }) => changes.push([...added, ...removed]));
  await watcher.start();
  expect(changes.splice(0)).toHaveLength(1);
  renameSync(join(path, nameOf(0)), join(path, 'other'));
  await watcher.check();
  expect(changes.flat().sort()).toEqual(['other', nameOf(0)]);
});

test('readVolume lists a large directory without holding up the event loop', async () => {
  const { files } = await readVolume(largeDirectory(), { fs });
  expect(files.size).toBe(FILES);
});
