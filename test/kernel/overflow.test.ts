/** The kernel's queue of events overflows, and later events are lost; neither Node.js nor libuv reports that. */
import { readFileSync, unlinkSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { linuxOnly, skip } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { openScene } from '../support/open-scene.js';
import { some } from '../support/rounds.js';

linuxOnly();

/** A limit that was raised a lot would take too long to reach. */
const MOST_EVENTS = 200_000;

function queueLength(): number {
  return Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
}

/**
 * More events than the queue holds, in one turn. They are about other names in an ancestor, which are no hints: the
 * watcher gets no hint.
 */
function flood(directory: string): void {
  const noise = join(directory, 'noise');
  for (let event = 0; event <= queueLength(); event += 2) {
    writeFileSync(noise, '');
    unlinkSync(noise);
  }
}

/** Resolves when the process has read its queue to the end: the watch here shares it. */
async function queueRead(): Promise<void> {
  const directory = temporaryDirectory();
  const heard = { yet: false };
  const canary = watch(directory, () => (heard.yet = true));
  for (let turn = 0; !heard.yet; turn += 1) {
    writeFileSync(join(directory, `${turn}`), '');
    await new Promise((resolve) => setImmediate(resolve));
  }
  canary.close();
}

const losses: Record<string, (volume: KubeletVolume) => void> = {
  'a swap'(volume) {
    volume.publish({ key: 'lost' });
  },
  'two hundred swaps'(volume) {
    for (let swap = 0; swap < 200; swap += 1) volume.publish({ key: `${swap}` });
    volume.publish({ key: 'lost' });
  },
  'the volume recreated'(volume) {
    volume.remove();
    volume.publish({ key: 'lost' });
  },
};

test.for(some(Object.keys(losses), 2))(
  '%s that is lost in an overflow is found by the resync, and later swaps are seen natively',
  async (loss, context) => {
    if (queueLength() > MOST_EVENTS) skip(context, `the queue of events holds ${queueLength()} here`);
    // The clock does not advance by itself, so until it is advanced only the kernel gives hints.
    const clock = new FakeClock();
    const scene = openScene('fs');
    const volume = new KubeletVolume(join(scene.root, 'volume'), { keepOldRevisions: true });
    volume.publish({ key: 'v1' });
    await scene.watch(volume.path('key'), { clock, resyncIntervalMs: 5_000 });
    await scene.reports('v1');

    flood(scene.root);
    losses[loss]?.(volume);
    await queueRead();
    await scene.watcher.idle();
    expect(scene.reported).toEqual(['v1']);

    await clock.advance(5_000);
    await scene.reports('lost');
    await scene.watcher.idle(); // what comes now has a cause of its own
    for (const version of ['v2', 'v3', 'v4']) {
      volume.publish({ key: version });
      await scene.reports(version);
    }
    expect(scene.watcher.status()).toMatchObject({ changes: 5, resyncs: 1, restarts: 0 });
    expect(scene.errors).toEqual([]);
  },
);
