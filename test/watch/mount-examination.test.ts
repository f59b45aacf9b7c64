import { nodeFileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/file-system.js';
import type { Found } from '../../src/fs/observation.js';
import { MountExamination } from '../../src/watch/mount-examination.js';

const TABLE = '/proc/self/mountinfo';

function foundAt(realPath: string): Found {
  return { snapshot: { kind: 'file', realPath }, files: new Map() } as unknown as Found;
}

test('watchers that start together share the readings of the mount table, and none takes one that began before it asked', async () => {
  let readings = 0;
  const began: number[] = [];
  const fs: FileSystem = {
    ...nodeFileSystem,
    open(path, flags, mode) {
      if (path === TABLE) readings += 1;
      return nodeFileSystem.open(path, flags, mode);
    },
  };
  const examinations = Array.from({ length: 50 }, (_, index) => {
    const before = readings;
    const examination = new MountExamination(fs).examine(foundAt(`/nowhere/${index}`), 'start');
    return Promise.resolve(examination).then(() => began.push(readings - before));
  });
  await Promise.all(examinations);
  expect(began).toHaveLength(50);
  expect(Math.min(...began)).toBeGreaterThan(0);
  expect(readings).toBeLessThan(10);
});
