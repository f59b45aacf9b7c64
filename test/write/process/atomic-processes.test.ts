import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { AtomicVolume, atomicWriteFile, isTemporaryName } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { debris } from '../../support/debris.js';
import { aDayLater } from '../../support/later.js';
import { rounds } from '../../support/rounds.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const script = (name: string): string => fileURLToPath(new URL(`../../support/${name}.mjs`, import.meta.url));

/** In memory, where swaps are fastest and tears likeliest. */
const memory = existsSync('/dev/shm') ? '/dev/shm' : undefined;

function start(command: string, ...args: string[]): ChildProcess & { stdout: NodeJS.ReadableStream } {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** The first thing it says. Rejects when it ends without a word. */
async function said(child: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<string> {
  // After the last of what it said.
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => {
    throw new Error(
      `${child.spawnargs.join(' ')} ended with ${String(code ?? signal)} before it said anything`,
    );
  });
  ended.catch(() => undefined);
  const [chunk] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
  return chunk.toString();
}

test('a program that ends without output is an error at once, not a test that hangs', async () => {
  await expect(said(start(process.execPath, '-e', 'process.exit(7)'))).rejects.toThrow('ended with 7');
});

const unfinished = (directory: string): string[] => readdirSync(directory).filter(isTemporaryName);

test('writers that are killed at any moment show readers in other processes nothing partial, and leave nothing behind for good', async () => {
  const KILLS = rounds(3, 200);
  const directory = temporaryDirectory();
  const [file, volume] = [join(directory, 'files/file'), join(directory, 'volume')];
  mkdirSync(volume);
  const first = `1 a\na`;
  await atomicWriteFile(file, first, { createDirectory: true });
  await new AtomicVolume(volume).write({ 'tls.crt': first, 'tls.key': first, extra: first });

  const reader = start(process.execPath, script('reading-process'), file, volume);
  const report = text(reader.stdout);
  let killed = 0;
  let caughtWriting = 0;
  const kill = async (writer: ChildProcess): Promise<void> => {
    writer.kill('SIGKILL');
    await once(writer, 'exit');
    killed += 1;
    if (unfinished(join(directory, 'files')).length > 0) caughtWriting += 1;
  };
  const killOneAfterAnother = async (): Promise<void> => {
    while (killed < KILLS) {
      const writer = start(process.execPath, script('writing-process'), file, volume);
      await said(writer);
      // Not a wait for anything: at which moment it dies is left to chance.
      await setTimeout(Math.random() * 20);
      await kill(writer);
    }
    // On a busy machine all of them may die before they have begun; this one has begun.
    const halfway = start(process.execPath, script('waiting-process'), file);
    await said(halfway);
    await kill(halfway);
  };
  // Two at a time: writers must not sweep away what the other is making.
  await Promise.all([killOneAfterAnother(), killOneAfterAnother()]);
  reader.stdin?.end();
  const seen = JSON.parse(await report) as Record<string, number>;
  console.info(
    `${killed} writers killed, an unfinished file seen after ${caughtWriting}; a reader saw`,
    seen,
  );

  expect(seen).toMatchObject({ tornFiles: 0, missingFiles: 0, tornSets: 0, missingSets: 0 });
  expect(seen['files']).toBeGreaterThan(0);
  await aDayLater(async () => {
    await atomicWriteFile(file, first);
    await new AtomicVolume(volume).write({ 'tls.crt': first });
  });
  expect(debris(join(directory, 'files'), 'file')).toEqual([]);
  const { files } = await new AtomicVolume(volume).read();
  expect(debris(volume, '..data', ...files.keys())).toHaveLength(1);
});

test('a certificate and its key that are read with read() match, however often they are swapped', async () => {
  const READS = rounds(100, 3_000);
  const directory = temporaryDirectory(memory);
  const volume = new AtomicVolume(directory);
  await volume.write({ 'tls.crt': '0', 'tls.key': '0' });
  const swapper = start(process.execPath, script('swapping-process'), directory);
  const swapped = text(swapper.stdout);
  const seen = { pairs: 0, mismatched: 0, naivePairs: 0, naiveMismatched: 0, naiveMissing: 0 };
  const revisions = new Set<string | undefined>();
  // It swaps until it is told to stop, so that they meet however the machine divides its time between them.
  while ((seen.pairs < READS || revisions.size < 20) && swapper.exitCode === null) {
    const { revision, files } = await volume.read();
    revisions.add(revision);
    seen.pairs += 1;
    if (files.size !== 2 || !files.get('tls.crt')?.equals(files.get('tls.key') ?? Buffer.of()))
      seen.mismatched += 1;
    try {
      const certificate = await readFile(join(directory, 'tls.crt'), 'utf8');
      const key = await readFile(join(directory, 'tls.key'), 'utf8');
      seen.naivePairs += 1;
      if (certificate !== key) seen.naiveMismatched += 1;
    } catch {
      seen.naiveMissing += 1;
    }
  }
  swapper.stdin?.end();
  const swaps = await swapped;
  console.info(`${swaps} swaps, ${revisions.size} of them seen`, seen);
  expect(seen.mismatched).toBe(0);
  expect(revisions.size).toBeGreaterThanOrEqual(20);
  expect((await volume.read()).files.get('tls.key')?.toString()).toBe(swaps);
});

/** Why namespaces cannot be had here, if they cannot. */
function obstacleTo(...flags: string[]): string | undefined {
  const { status, stderr, error } = spawnSync('unshare', [...flags, 'true'], { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

const mounts = ['-Urm'];
const noMounts = obstacleTo(...mounts);
if (noMounts !== undefined) console.warn(`No test with mounts here: ${noMounts}`);

test.skipIf(noMounts !== undefined)(
  'on a full disk, a read-only disk and a file mounted by itself, the old content stays and the error has the reason',
  () => {
    const output = execFileSync(
      'unshare',
      [...mounts, process.execPath, script('hostile-mounts'), temporaryDirectory()],
      {
        encoding: 'utf8',
      },
    );
    const failed = (code: string, step: string): object => ({
      name: 'WriteError',
      code,
      step,
      published: false,
    });
    expect(JSON.parse(output)).toEqual({
      onFullDisk: [
        failed('ERR_WRITE_NO_SPACE', 'write'),
        failed('ERR_WRITE_NO_SPACE', 'write'),
        failed('ERR_WRITE_NO_SPACE', 'write'),
        true,
        'good',
        ['file', 'volume'],
        3,
      ],
      onReadOnlyDisk: [failed('ERR_WRITE_ACCESS', 'create'), failed('ERR_WRITE_ACCESS', 'create')],
      onMountedFile: [failed('ERR_WRITE_MOUNTED', 'rename'), 'mounted', ['full', 'mounted', 'source']].with(
        1,
        'source',
      ),
    });
  },
);

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('No test as another user here: not root');

test.skipIf(!isRoot)(
  'a directory without write permission is an error at once, not after seconds of retries',
  () => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o755);
    const program = `
    import { atomicWriteFile } from 'resilient-watcher';
    process.setuid(65534);
    const { code, step } = await atomicWriteFile(${JSON.stringify(join(directory, 'file'))}, 'x').catch((error) => error);
    process.stdout.write(code + ' ' + step);`;
    const cwd = fileURLToPath(new URL('../../..', import.meta.url));
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd,
      encoding: 'utf8',
    });
    expect(output).toBe('ERR_WRITE_ACCESS create');
  },
);

test.skipIf(!isRoot)(
  'an unprivileged user may have any umask: directories can be used, and removed again',
  () => {
    const cwd = fileURLToPath(new URL('../../..', import.meta.url));
    for (const umask of [0o177, 0o277, 0o377, 0o777]) {
      const directory = temporaryDirectory();
      chmodSync(directory, 0o777);
      const program = `
    import { mkdirSync, readdirSync, statSync } from 'node:fs';
    import { AtomicVolume, atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';
    process.setgroups([]);
    process.setgid(65534);
    process.setuid(65534);
    process.umask(${umask});
    const at = (name) => ${JSON.stringify(directory)} + '/' + name;
    const modeOf = (name) => (statSync(at(name)).mode & 0o7777).toString(8);
    const volume = new AtomicVolume(at('a/b/volume'), { createDirectory: true });
    await volume.write({ key: 'one', 'd/e': 'deep' });
    // As a writer leaves it that is killed before it has set the mode.
    mkdirSync(at('a/b/volume/..2006_01_02_15_04_05.123456789'));
    await volume.write({ key: 'two', 'd/e': 'deep' });
    await atomicWriteFile(at('c/d/file'), 'x', { createDirectory: true });
    atomicWriteFileSync(at('e/f/file'), 'x', { createDirectory: true });
    const { files } = await volume.read();
    console.log(JSON.stringify({
      files: [...files].map(([key, bytes]) => key + '=' + bytes),
      entries: readdirSync(at('a/b/volume')).filter((name) => !name.startsWith('..2')),
      revisions: readdirSync(at('a/b/volume')).filter((name) => name.startsWith('..2')).length,
      modes: ['a/b/volume/..data/', 'a/b/volume/d', 'a/b/volume/key', 'a', 'c/d', 'e/f', 'e/f/file'].map(modeOf),
    }));`;
      const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
        cwd,
        encoding: 'utf8',
      });
      const made = (0o777 & ~umask) | 0o700;
      expect(JSON.parse(output), umask.toString(8)).toEqual({
        files: ['d/e=deep', 'key=two'],
        entries: ['..data', 'd', 'key'],
        revisions: 1,
        modes: ['755', '755', '644', made.toString(8), made.toString(8), made.toString(8), '600'],
      });
    }
  },
);
