/** A file that is published and at once written in place: neither what is partial nor what is empty is reported. */
import {
  closeSync,
  constants,
  openSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const GRACE_MS = 500;
const PIECES = ['{"a": 1, ', '"b": 2, ', '"c": 3}'];
const WHOLE = PIECES.join('');

/** How the file at `f` is published; the result is the path at which it is written afterwards. */
const publications: Record<string, (root: string) => string> = {
  'a link is turned'(root) {
    writeFileSync(join(root, 'f.1'), 'new');
    symlinkSync('f.1', join(root, 'l'));
    renameSync(join(root, 'l'), join(root, 'f'));
    return join(root, 'f.1');
  },
  'a regular file is renamed over the link, and then a link is turned'(root) {
    writeFileSync(join(root, 'next'), 'between');
    renameSync(join(root, 'next'), join(root, 'f'));
    return publications['a link is turned']?.(root) ?? '';
  },
  'a file is renamed into place'(root) {
    writeFileSync(join(root, 'next'), 'new');
    renameSync(join(root, 'next'), join(root, 'f'));
    return join(root, 'f');
  },
};

/** A watcher of `f` with the kernel's events, in a time that passes only when the test says so. */
async function watchFile(
  backend: 'fs' | 'poll',
): Promise<{ root: string; clock: FakeClock; reported: string[] }> {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'f.0'), 'old');
  utimesSync(join(root, 'f.0'), 0, 0);
  symlinkSync('f.0', join(root, 'f'));
  const clock = new FakeClock(Date.now());
  const options = { backend, clock, missingGraceMs: GRACE_MS, pollIntervalMs: 4 };
  const watcher = new ResilientWatcher(join(root, 'f'), options);
  onTestFinished(() => watcher.close());
  const reported: string[] = [];
  watcher.on('change', ({ current }) => reported.push(String(current.content)));
  await watcher.start();
  return { root, clock, reported };
}

const cases = Object.keys(publications).flatMap((publication) =>
  (['fs', 'poll'] as const).map((backend) => ({ publication, backend })),
);

test.each(cases)('$publication and written in pieces ($backend)', async ({ publication, backend }) => {
  for (const flags of [constants.O_SYNC, constants.O_TRUNC, constants.O_TRUNC | constants.O_SYNC]) {
    const { root, clock, reported } = await watchFile(backend);
    const file = publications[publication]?.(root) ?? '';
    const fd = openSync(file, constants.O_WRONLY | flags);
    for (const piece of PIECES) {
      writeSync(fd, piece);
      await clock.advance(8);
    }
    closeSync(fd);
    await clock.advance(5_000);
    expect(reported.filter((text) => !['old', 'between', 'new', WHOLE].includes(text))).toEqual([]);
    expect(reported.at(-1)).toBe(WHOLE);
  }
});

test.each(cases)(
  '$publication and truncated waits for missingGraceMs ($backend)',
  async ({ publication, backend }) => {
    const { root, clock, reported } = await watchFile(backend);
    const file = publications[publication]?.(root) ?? '';
    truncateSync(file);
    await clock.advance(GRACE_MS - 8);
    expect(reported).not.toContain('');
    await clock.advance(5_000);
    expect(reported.at(-1)).toBe('');
  },
);

test('a file that is empty when it is renamed into place waits, too', async () => {
  const { root, clock, reported } = await watchFile('fs');
  writeFileSync(join(root, 'next'), '');
  renameSync(join(root, 'next'), join(root, 'f'));
  await clock.advance(GRACE_MS - 1);
  expect(reported).toEqual(['old']);
  await clock.advance(5_000);
  expect(reported).toEqual(['old', '']);
});
