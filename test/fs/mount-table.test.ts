/** Which mounts keep updates from showing, told from a mount table as the kernel writes it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem, type FileSystemCalls } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { runSync } from '../../src/fs/effects.js';
import { readMounts, staleMountIn } from '../../src/fs/mount-table.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const TABLE = [
  '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
  '30 22 0:40 / /data/empty\\040dir rw - tmpfs tmpfs rw',
  '31 22 8:1 /var/lib/host /data/host rw - ext4 /dev/sda1 rw',
  '32 22 8:1 /pods/x/volume-subpaths/app.yaml/0 /etc/app.yaml rw - ext4 /dev/sda1 rw',
  '33 22 8:1 /pods/x/config/..2026_01_01_00_00_00.1/conf.d /etc/conf.d rw - ext4 /dev/sda1 rw',
].join('\n');

test.each([
  { path: '/data/empty dir', kind: 'directory', reason: undefined },
  { path: '/data/empty dir/file', kind: 'file', reason: undefined },
  { path: '/data/host', kind: 'directory', reason: undefined },
  { path: '/etc/app.yaml', kind: 'file', reason: /mounted by itself/ },
  { path: '/etc/conf.d', kind: 'directory', reason: /subPath mount of one revision/ },
  { path: '/etc/conf.d/app.yaml', kind: 'file', reason: /subPath mount of one revision/ },
] as const)('$path ($kind): $reason', ({ path, kind, reason }) => {
  const table = join(temporaryDirectory(), 'mountinfo');
  writeFileSync(table, TABLE);
  const { sync } = nodeFileSystem;
  const calls: FileSystemCalls = { ...sync, open: (_, flags) => sync.open(table, flags) };
  const told = staleMountIn(runSync(readMounts(), calls), path, kind)?.message;
  if (reason) expect(told).toMatch(reason);
  else expect(told).toBeUndefined();
});
