/** Names that are not UTF-8, in a tree that the real `@parcel/watcher` watches: its events name other paths. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';

import { ResilientWatcher } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

test.skipIf(process.platform !== 'linux').each([
  ['in the tree', ''],
  ['at its root', '/a\udcff'],
])(
  'parcel hears of files below a directory whose name is not UTF-8, %s, also after it was moved',
  async (_, at) => {
    const base = temporaryDirectory();
    const odd = Buffer.concat([Buffer.from(`${base}/a`), Buffer.of(0xff)]);
    const below = Buffer.concat([odd, Buffer.from('/below')]);
    const file = Buffer.concat([below, Buffer.from('/b'), Buffer.of(0xfe)]);
    mkdirSync(below, { recursive: true });
    writeFileSync(file, 'one');
    const options = { backend: 'parcel', recursive: true, resyncIntervalMs: 0, settleMs: 0 } as const;
    const watcher = new ResilientWatcher(`${base}${at}`, options);
    onTestFinished(() => watcher.close());
    await watcher.start();
    const texts = (): string[] =>
      [...(watcher.current?.files.values() ?? [])].map(({ content }) => String(content));
    expect(texts()).toEqual(['one']);
    writeFileSync(file, 'two');
    await expect.poll(texts).toEqual(['two']);
    renameSync(odd, `${base}.away`);
    await expect.poll(texts).toEqual([]);
    renameSync(`${base}.away`, odd);
    await expect.poll(texts).toEqual(['two']);
    writeFileSync(file, 'three');
    await expect.poll(texts).toEqual(['three']);
  },
);
