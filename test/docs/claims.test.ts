/** Claims of README about other watchers that no benchmark measures. */
import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { textOf } from './markdown.js';

test.runIf(process.platform === 'linux')(
  'of 12 updates of a mounted file fs.watch on it misses 11, and this library none',
  async () => {
    const claim = 'of 12 updates it missed 11. This library missed none.';
    expect(textOf('README.md').replace(/\s+/g, ' ')).toContain(claim);
    const UPDATES = 12;
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ 'app.yaml': '0' });
    const path = volume.path('app.yaml');

    const seenByFsWatch = new Set<string>();
    const native = watch(path, () => {
      seenByFsWatch.add(readFileSync(path, 'utf8'));
    });
    onTestFinished(() => native.close());
    const seenByUs: string[] = [];
    const watcher = new ResilientWatcher(path);
    onTestFinished(() => watcher.close());
    watcher.on('change', ({ current }) => seenByUs.push(String(current.content)));
    await watcher.start();

    const updates = Array.from({ length: UPDATES }, (_, index) => String(index + 1));
    for (const update of updates) {
      const reported = new Promise((resolve) => watcher.once('change', resolve));
      volume.publish({ 'app.yaml': update });
      // Both receive the events of one inotify queue, in its order.
      await reported;
    }
    expect(seenByUs).toEqual(['0', ...updates]);
    expect(updates.filter((update) => !seenByFsWatch.has(update))).toHaveLength(11);
  },
);
