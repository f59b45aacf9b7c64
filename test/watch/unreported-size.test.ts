/** Files that report no size, as those of `/proc` and of some FUSE file systems. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import fc from 'fast-check';
import { readVolume, ResilientWatcher } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { fsWith, statsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const fsWithoutSizes = (): FileSystem =>
  fsWith(
    statsWith((stat) => {
      if (stat.isFile()) stat.size = 0n;
    }),
  );

const maxContentBytes = 1_000;

test.each<[string, (directory: string) => ConstructorParameters<typeof ResilientWatcher>]>([
  ['file', (directory) => [join(directory, 'large')]],
  ['link to it', (directory) => [join(directory, 'link')]],
  ['group', (directory) => [[join(directory, 'large'), join(directory, 'small')]]],
  ['directory', (directory) => [directory]],
  ['tree', (directory) => [directory, { recursive: true }]],
])('a file without a size that is larger than the limit is a limit: %s', async (_, argumentsFor) => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'large'), 'x'.repeat(100_000));
  writeFileSync(join(directory, 'small'), 'small');
  symlinkSync('large', join(directory, 'link'));
  const [path, options] = argumentsFor(directory);
  const clock = new FakeClock();
  const watcher = new ResilientWatcher(path, { ...options, fs: fsWithoutSizes(), clock, maxContentBytes });
  onTestFinished(() => watcher.close());
  const heard: string[] = [];
  watcher.on('unreadable', ({ error }) => heard.push(error.message));
  watcher.on('change', ({ cause }) => heard.push(cause));
  await watcher.start();
  for (let turn = 0; turn < 3; turn += 1) {
    await clock.advance(5_000);
    await watcher.check();
  }
  expect(heard).toEqual(['start']);
  const files = [...(watcher.current?.files.values() ?? [])];
  const large = files.find(({ content }) => content === undefined);
  expect(large?.size).toBeGreaterThan(maxContentBytes);
  const others = files.filter(({ realPath }) => realPath !== large?.realPath);
  expect(others.every(({ content }) => String(content) === 'small')).toBe(true);
  const { kind } = watcher.current ?? {};
  if (kind === 'directory' || kind === 'tree')
    expect(watcher.status().warnings.map(({ code }) => code)).toEqual(['limit']);
});

test('a file without a size that is within the limit has its content', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'small'), 'small');
  const { files } = await readVolume(directory, { fs: fsWithoutSizes(), maxContentBytes });
  expect(String(files.get('small')?.content)).toBe('small');
});

test('a file without a size is read as a whole or not at all, whatever its size and the limit are', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'f');
  // Such a file is read in pieces of 64 KiB.
  const around = fc
    .constantFrom(0, 1_000, 65_536, 131_072)
    .chain((base) => fc.integer({ min: base, max: base + 9_000 }));
  const larger = fc.integer({ min: -2, max: 2 });
  await fc.assert(
    fc.asyncProperty(around, larger, async (limit, by) => {
      const text = 'x'.repeat(Math.max(0, limit + by));
      writeFileSync(path, text);
      const { files } = await readVolume(directory, { fs: fsWithoutSizes(), maxContentBytes: limit });
      expect(files.get('f')?.content?.length).toBe(text.length > limit ? undefined : text.length);
    }),
    { numRuns: 30 },
  );
});
