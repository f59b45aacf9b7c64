/** Where paths lead, and which entries decide that. */
import nodeFileSystem, { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { systemClock } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { runNow } from '../../src/core/scheduling/steps.js';
import { Disk, noAnswers } from '../../src/fs/disk.js';
import { Mounts } from '../../src/fs/mounts.js';
import { resolve } from '../../src/fs/resolve.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('paths that looks of one event resolve lead where each leads by itself, by the same entries', () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'real/inner'), { recursive: true });
  symlinkSync('real', join(root, 'link'));
  for (const name of ['a', 'b', 'inner/c']) writeFileSync(join(root, 'real', name), name);
  symlinkSync('inner/c', join(root, 'real/linked'));
  symlinkSync('nowhere', join(root, 'real/dangling'));
  const names = ['a', 'b', 'linked', 'a', 'none', '..', '.', '', 'a/below', 'dangling', 'inner/c', 'b'];
  const paths = [...names.map((name) => `${root}/link/${name}`), root, '/'];
  const disk = () => new Disk(nodeFileSystem, Mounts.of(nodeFileSystem), systemClock, noAnswers());
  const ofOneEvent = disk();
  for (const path of paths)
    expect(runNow(resolve(path, ofOneEvent)), path).toEqual(runNow(resolve(path, disk())));
});
