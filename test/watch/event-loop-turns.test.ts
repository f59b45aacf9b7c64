/** Hundreds of links in one target: the event loop has its turns while all of them are looked up, listened to and left. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync, type FSWatcher } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { fsWith, spend, type Intervention } from '../support/intercepted-fs.js';
import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const LINKS = 250;

/** How long each call takes at least, ms: after some forty of them, the next turn is due. */
const CALL_MS = 0.1;

/** More than one turn has, and fewer than there are links. */
const MOST_CALLS_IN_A_TURN = 200;

/** A file system with slow calls. `most` is how many of them came in one turn of the event loop. */
function countingFs(): { readonly fs: FileSystem; readonly counts: { most: number } } {
  const counts = { most: 0 };
  let inThisTurn = 0;
  const count = (): void => {
    if (inThisTurn === 0) setImmediate(() => (inThisTurn = 0));
    inThisTurn += 1;
    counts.most = Math.max(counts.most, inThisTurn);
    spend(CALL_MS);
  };
  const watch: Intervention = ({ make }) => {
    count();
    const native = make() as FSWatcher;
    const close = native.close.bind(native);
    return Object.assign(native, {
      close() {
        count();
        close();
      },
    });
  };
  return { fs: fsWith({ each: count, watch }), counts };
}

const names = Array.from({ length: LINKS }, (_, index) => `k${index}`);

/** Each makes the links of one kind in `links`, and returns what is watched. */
const KINDS: Readonly<Record<string, (links: string, others: string) => string>> = {
  'links to files': (links, others) => {
    for (const name of names) {
      writeFileSync(join(others, name), name);
      symlinkSync(join(others, name), join(links, name));
    }
    return links;
  },
  'links to nothing': (links, others) => {
    for (const name of names) symlinkSync(join(others, name), join(links, name));
    writeFileSync(join(links, 'file'), 'file');
    return links;
  },
  'links to as many directories': (links, others) => {
    for (const name of names) {
      mkdirSync(join(others, name));
      writeFileSync(join(others, name, 'file'), name);
      symlinkSync(join(others, name), join(links, name));
    }
    return links;
  },
  'links to keys of as many volumes': (links, others) => {
    for (const name of names) {
      new KubeletVolume(join(others, name)).publish({ key: name });
      symlinkSync(join(others, name, 'key'), join(links, name));
    }
    return links;
  },
  'keys of a volume that are links': (links, others) => {
    const volume = new KubeletVolume(links);
    volume.publish({ own: '1' });
    for (const name of names) {
      writeFileSync(join(others, name), name);
      symlinkSync(join(others, name), volume.path(`..data/${name}`));
    }
    return links;
  },
};

test.each(some(Object.entries(KINDS), 2, 1))(
  'the event loop has its turns while there are many %s',
  async (_, make) => {
    const root = temporaryDirectory();
    const [links, others] = [join(root, 'links'), join(root, 'others')];
    for (const directory of [links, others]) mkdirSync(directory);
    const path = make(links, others);
    const { fs, counts } = countingFs();
    const watcher = new ResilientWatcher(path, {
      fs,
      backend: 'fs',
      resyncIntervalMs: 0,
      recursive: { followLinks: true },
    });
    await watcher.start();
    expect(counts.most).toBeLessThan(MOST_CALLS_IN_A_TURN);
    renameSync(others, `${others}.old`);
    await watcher.check();
    expect(counts.most).toBeLessThan(MOST_CALLS_IN_A_TURN);
    await watcher.close();
    expect(counts.most).toBeLessThan(MOST_CALLS_IN_A_TURN);
  },
);
