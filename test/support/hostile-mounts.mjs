/**
 * What writers meet on a full disk, a read-only one, and at a file that is mounted by itself:
 * `hostile-mounts.mjs DIRECTORY`, in a mount namespace of its own. Prints the outcomes as JSON.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';

const directory = process.argv[2];
const mount = (...args) => execFileSync('mount', args, { stdio: 'pipe' });

const attempt = async (work) => {
  try {
    await work();
    return 'written';
  } catch ({ name, code, step, published }) {
    return { name, code, step, published };
  }
};

const full = join(directory, 'full');
mkdirSync(full);
mount('-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', full);
const file = join(full, 'file');
const good = 'good'.repeat(50_000);
writeFileSync(file, good);
const large = Buffer.alloc(3 * 2 ** 20, 'x');
const volume = new AtomicVolume(join(full, 'volume'), { createDirectory: true });
await volume.write({ key: 'good' });
const onFullDisk = [
  await attempt(() => atomicWriteFile(file, large)),
  await attempt(() => atomicWriteFileSync(file, large)),
  await attempt(() => volume.write({ key: large })),
  readFileSync(file, 'utf8') === good,
  (await volume.read()).files.get('key').toString(),
  readdirSync(full).sort(),
  readdirSync(join(full, 'volume')).length,
];

mount('-o', 'remount,bind,ro', full);
const onReadOnlyDisk = [
  await attempt(() => atomicWriteFile(file, 'new')),
  await attempt(() => volume.write({ key: 'new' })),
];

const mounted = join(directory, 'mounted');
writeFileSync(mounted, 'mounted');
writeFileSync(join(directory, 'source'), 'source');
mount('--bind', join(directory, 'source'), mounted);
const onMountedFile = [
  await attempt(() => atomicWriteFile(mounted, 'new')),
  readFileSync(mounted, 'utf8'),
  readdirSync(directory).sort(),
];

process.stdout.write(JSON.stringify({ onFullDisk, onReadOnlyDisk, onMountedFile }));
