/** kubelet on Windows removes `..data` and links it anew, so that for a moment a volume has no contents. */
import { symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

test.each(['key', ''])(
  'a moment without ..data is not reported, but the new revision is: %j',
  async (key) => {
    const directory = join(temporaryDirectory(), 'volume');
    const volume = new KubeletVolume(directory);
    volume.publish({ key: 'v1' });
    const clock = new FakeClock();
    const backend = new ScriptedBackend();
    const watcher = new ResilientWatcher(join(directory, key), { clock, backend });
    onTestFinished(() => watcher.close());
    const events: string[] = [];
    watcher.on('change', ({ changed, removed, current }) => {
      events.push(`${current.constructor.name} changed ${changed.join()} removed ${removed.join()}`);
    });
    await watcher.start();
    events.length = 0;

    const { revision } = volume.publish({ key: 'v2' });
    const data = join(directory, '..data');
    unlinkSync(data);
    backend.hint();
    await clock.advance(1);
    expect(events).toEqual([]);

    symlinkSync(revision, data);
    backend.hint();
    await clock.advance(5_000);
    await watcher.idle();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatch(/^(File|Set)Snapshot changed .+ removed $/);
  },
);
