/**
 * Writes in a user namespace that does not map all ids, as in rootless containers: whoever is not mapped has the id 65534
 * there, which may be that of a mapped user, too.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  lchownSync,
} from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, test } from 'vitest';

import { isRoot } from '../support/attacker.js';
import { checkBuilt } from '../support/built-package.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const REPOSITORY = join(import.meta.dirname, '../..');

/** The owner of the namespace, who is root in it, and who is 65534 in it; both outside of it. */
const OWNER = 100_000;
const NOBODY = 165_534;
/** Users who are not mapped. */
const FOREIGN = 2_000;
const ANOTHER = 3_000;

/** Whether a namespace can be made whose ids another process maps. */
const isPossible = isRoot && spawnSync('unshare', ['-U', 'true']).status === 0;

beforeAll(() => checkBuilt(REPOSITORY));

/** Runs a program in a namespace with these two users, and returns what it prints as JSON. */
async function inNamespace(program: string, user: 'root' | 'nobody'): Promise<unknown> {
  const start = `
    const { AtomicVolume, atomicWriteFile, atomicWriteFileSync } = await import(${JSON.stringify(join(REPOSITORY, 'dist/index.js'))});
    const fs = await import('node:fs');
    const codeOf = (work) => Promise.resolve().then(work).then(() => 'written', ({ code }) => code);
    ${program}`;
  const holder = spawn('unshare', ['-U', 'sh', '-c', 'echo ready; read end'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  for (const map of ['uid_map', 'gid_map'])
    writeFileSync(`/proc/${holder.pid}/${map}`, `0 ${OWNER} 1\n65534 ${NOBODY} 1\n`);
  const id = user === 'root' ? '0' : '65534';
  const into = ['-t', String(holder.pid), '-U', '-S', id, '-G', id];
  const command = [process.execPath, '--input-type=module', '-e', start];
  const { stdout, stderr } = spawnSync('nsenter', [...into, ...command], { encoding: 'utf8' });
  holder.stdin.end('end\n');
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as unknown;
}

/** A directory of this user, which everybody may enter. */
function directoryOf(uid: number, mode = 0o755): string {
  const directory = temporaryDirectory();
  chownSync(directory, uid, uid);
  chmodSync(directory, mode);
  return directory;
}

function fileOf(uid: number, path: string, mode = 0o600): string {
  writeFileSync(path, 'old');
  chownSync(path, uid, uid);
  chmodSync(path, mode);
  return path;
}

const WRITES = (path: string): string => `[
  await codeOf(() => atomicWriteFile(${JSON.stringify(path)}, 'new')),
  await codeOf(() => atomicWriteFileSync(${JSON.stringify(path)}, 'new')),
]`;

const REFUSED = ['ERR_WRITE_UNTRUSTED', 'ERR_WRITE_UNTRUSTED'];

describe.skipIf(!isPossible)('where not all ids are mapped', () => {
  test.each(['root', 'nobody'] as const)(
    'a link of another user in a sticky directory is not followed by %s, whoever owns the directory',
    async (user) => {
      const home = directoryOf(user === 'root' ? OWNER : NOBODY);
      const target = fileOf(user === 'root' ? OWNER : NOBODY, join(home, 'precious'));
      for (const owner of [0, FOREIGN, NOBODY]) {
        const shared = directoryOf(owner, 0o1777);
        symlinkSync(target, join(shared, 'link'));
        symlinkSync(home, join(shared, 'directory'));
        for (const name of ['link', 'directory']) lchownSync(join(shared, name), ANOTHER, ANOTHER);
        for (const path of [join(shared, 'link'), join(shared, 'directory/precious')])
          expect(await inNamespace(`console.log(JSON.stringify(${WRITES(path)}))`, user)).toEqual(REFUSED);
      }
      expect(readFileSync(target, 'utf8')).toBe('old');
    },
  );

  test.each(['root', 'nobody'] as const)(
    'a file of another user in a sticky directory is not replaced by %s',
    async (user) => {
      const shared = directoryOf(user === 'root' ? OWNER : NOBODY, 0o1777);
      const path = fileOf(ANOTHER, join(shared, 'file'));
      expect(await inNamespace(`console.log(JSON.stringify(${WRITES(path)}))`, user)).toEqual(REFUSED);
      expect(statSync(path).uid).toBe(ANOTHER);
    },
  );

  test('a file of another user is replaced by one of our own, and given to nobody', async () => {
    const directory = directoryOf(OWNER);
    const path = fileOf(FOREIGN, join(directory, 'file'), 0o4640);
    const program = `
      await atomicWriteFile(${JSON.stringify(path)}, 'new', { mode: 'keep' });
      console.log(JSON.stringify(fs.statSync(${JSON.stringify(path)}).uid));`;
    expect(await inNamespace(program, 'root')).toBe(0);
    const { uid, gid, mode } = statSync(path);
    expect({ uid, gid, mode: mode & 0o7777 }).toEqual({ uid: OWNER, gid: OWNER, mode: 0o600 });
  });

  test('who is 65534 in it replaces its own files in a sticky directory, and keeps its own revisions', async () => {
    const shared = directoryOf(0, 0o1777);
    const path = join(shared, 'file');
    const program = `
      const files = ${WRITES(path)}.concat(${WRITES(path)});
      const volume = new AtomicVolume(${JSON.stringify(directoryOf(NOBODY))});
      const changes = [];
      for (const turn of [1, 2]) changes.push((await volume.write({ key: 'same', 'd/e': 'same' })).changed);
      console.log(JSON.stringify({ files, changes }));`;
    expect(await inNamespace(program, 'nobody')).toEqual({
      files: ['written', 'written', 'written', 'written'],
      changes: [true, false],
    });
    expect(statSync(path).uid).toBe(NOBODY);
  });

  test('a revision of another user is replaced, although it holds the same files', async () => {
    const directory = directoryOf(NOBODY);
    const revision = join(directory, '..2020_01_01_00_00_00.1');
    mkdirSync(revision);
    fileOf(FOREIGN, join(revision, 'key'), 0o644);
    chownSync(revision, FOREIGN, FOREIGN);
    symlinkSync('..2020_01_01_00_00_00.1', join(directory, '..data'));
    const program = `
      const volume = new AtomicVolume(${JSON.stringify(directory)});
      console.log(JSON.stringify((await volume.write({ key: 'old' })).changed));`;
    expect(await inNamespace(program, 'nobody')).toBe(true);
  });
});
