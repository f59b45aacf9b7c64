/** Names that are not UTF-8, of which a backend of Node.js or of a user only knows that they have lost bytes. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const ODD = Buffer.from([0x61, 0xff]);

test.skipIf(process.platform !== 'linux').each([
  ['a file', ''],
  ['a file in a directory with such a name', 'a\udcff'],
])('a hint about %s whose name is not UTF-8 leads to it in a tree', async (_, below) => {
  const root = temporaryDirectory();
  const parent = below === '' ? Buffer.from(root) : Buffer.concat([Buffer.from(`${root}/`), ODD]);
  if (below !== '') mkdirSync(parent);
  const path = Buffer.concat([parent, Buffer.from('/'), ODD]);
  const other = join(root, 'new');
  for (const [name, text] of [
    [path, 'one'],
    [other, 'two'],
  ] as const)
    writeFileSync(name, text);
  const backend = new ScriptedBackend();
  const clock = new FakeClock();
  const options = { backend, clock, recursive: true, resyncIntervalMs: 0, settleMs: 0 };
  const watcher = new ResilientWatcher(root, options);
  onTestFinished(() => watcher.close());
  await watcher.start();
  const contents = (): string[] =>
    [...(watcher.current?.files.values() ?? [])].map(({ content }) => String(content));
  expect(contents().sort()).toEqual(['one', 'two']);
  renameSync(other, path);
  backend.hint(other);
  backend.hint(path.toString());
  await watcher.idle();
  await clock.advance(1_000);
  expect(contents()).toEqual(['two']);
});
