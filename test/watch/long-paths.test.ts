/** Entries whose path is longer than any call takes: 4,095 bytes. */
import { chdir, cwd } from 'node:process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const LONGEST = 4_095;
const NAME = 'n'.repeat(200);

/** A directory of which the path leaves room for a short name only. */
function deepDirectory(): string {
  let path = temporaryDirectory();
  while (path.length + 1 + NAME.length < LONGEST - 20) path = join(path, NAME);
  path = join(path, 'x'.repeat(Math.max(1, LONGEST - 20 - path.length)));
  mkdirSync(path, { recursive: true });
  return path;
}

/** Does something in a directory by relative paths, which may be longer from the root. */
function inside(directory: string, act: () => void): void {
  const before = cwd();
  chdir(directory);
  try {
    act();
  } finally {
    chdir(before);
  }
}

test.each([
  ['plain directory', {}],
  ['tree', { recursive: true }],
])('an entry whose path is too long is left out with one warning: %s', async (_, options) => {
  const directory = deepDirectory();
  writeFileSync(join(directory, 'short'), 'x');
  const watcher = new ResilientWatcher(directory, { ...options, settleMs: 0, missingGraceMs: 0 });
  onTestFinished(() => watcher.close());
  const heard: string[] = [];
  watcher.on('unreadable', ({ error }) => heard.push(error.message));
  watcher.on('warning', ({ code, message }) => heard.push(`${code}: ${message}`));
  await watcher.start();
  expect(heard).toEqual([]);
  inside(directory, () => writeFileSync(NAME, 'x'));
  await watcher.check();
  await watcher.check();
  expect(heard).toEqual([expect.stringMatching(/^limit: the paths of some of its entries are longer/)]);
  expect([...(watcher.current?.files.keys() ?? [])]).toEqual(['short']);
  expect(watcher.status().degraded).toBeNull();
  inside(directory, () => rmSync(NAME));
  await watcher.check();
  expect(watcher.status().warnings).toEqual([]);
});

test('a link with a target that is too long does not make its directory unreadable', async () => {
  const directory = deepDirectory();
  writeFileSync(join(directory, 'short'), 'x');
  symlinkSync(NAME, join(directory, 'link'));
  inside(directory, () => writeFileSync(NAME, 'x'));
  const watcher = new ResilientWatcher(directory, { settleMs: 0, missingGraceMs: 0 });
  onTestFinished(() => watcher.close());
  await watcher.start();
  expect([...(watcher.current?.files.keys() ?? [])]).toEqual(['short']);
  inside(directory, () => rmSync(NAME));
});
