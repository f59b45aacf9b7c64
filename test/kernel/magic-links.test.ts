/**
 * Links of `/proc` that lead into the mount namespace of another process, as a sidecar uses them (`shareProcessNamespace`).
 * At the same path there is another file here. Nothing is found by a resync.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, closeSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  AtomicVolume,
  atomicWriteFile,
  atomicWriteFileSync,
  readVolume,
  ResilientWatcher,
  SecretFile,
} from 'resilient-watcher';
import { diagnose } from '@resilient-watcher/cli/doctor';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { inMountNamespace } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

interface Scene {
  /** The same path in both namespaces. */
  readonly directory: string;
  /** The links of the other process. */
  readonly proc: string;
  /** The directory in the other namespace. */
  readonly theirs: string;
  readonly volume: KubeletVolume;
  readonly other: number | undefined;
}

/** A directory with a file and a volume, over which another process has mounted its own. */
async function scene(): Promise<Scene> {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'conf'), 'mine');
  new KubeletVolume(join(directory, 'volume')).publish({ key: 'mine' });
  const script = `mount -t tmpfs tmpfs ${directory} && cd ${directory} && printf theirs > conf && mkdir in volume && echo ready && exec sleep 60`;
  const other = spawn('unshare', ['-m', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void other.kill('SIGKILL'));
  await new Promise((resolve) => other.stdout.once('data', resolve));
  const proc = `/proc/${other.pid}`;
  const theirs = `${proc}/root${directory}`;
  const volume = new KubeletVolume(`${theirs}/volume`);
  volume.publish({ key: 'theirs' });
  return { directory, proc, theirs, volume, other: other.pid };
}

async function watched(
  path: string | string[],
  options: { recursive?: boolean } = {},
): Promise<{ watcher: ResilientWatcher; contents: () => Promise<string> }> {
  const clock = new FakeClock();
  const watcher = new ResilientWatcher(path, { clock, resyncIntervalMs: 0, ...options });
  onTestFinished(() => watcher.close());
  await watcher.start();
  // Without a tick of the file system's clock between them, a rename is like a write in place, which has to settle.
  const contents = async (): Promise<string> => {
    await clock.advance(50);
    return [...(watcher.current?.files.values() ?? [])].map(({ content }) => String(content)).join();
  };
  return { watcher, contents };
}

inMountNamespace(import.meta.url, () => {
  test.each<[string, (scene: Scene) => string]>([
    ['root', ({ theirs }) => `${theirs}/conf`],
    [
      'root, and "..": the parent of a root is itself',
      ({ proc, directory }) => `${proc}/root/..${directory}/conf`,
    ],
    ['root of a thread', ({ proc, directory }) => `${proc}/task/${proc.slice(6)}/root${directory}/conf`],
    ['cwd', ({ proc }) => `${proc}/cwd/conf`],
    [
      'cwd, and ".." behind it',
      ({ proc, directory }) => `${proc}/cwd/../../${directory.split('/').slice(-2).join('/')}/conf`,
    ],
    ['cwd, and ".." back to it', ({ proc }) => `${proc}/cwd/in/../conf`],
    [
      'a link here',
      ({ directory, theirs }) => {
        symlinkSync(theirs, join(directory, 'link'));
        return join(directory, 'link/conf');
      },
    ],
    [
      'an open directory of this process',
      ({ theirs }) => {
        const fd = openSync(theirs, 'r');
        onTestFinished(() => closeSync(fd));
        return `/proc/self/fd/${fd}/conf`;
      },
    ],
  ])('a file behind %s is read, watched and written there', async (_, pathOf) => {
    const all = await scene();
    const path = pathOf(all);
    const mine = (): string => readFileSync(join(all.directory, 'conf'), 'utf8');
    const theirs = (): string => readFileSync(join(all.theirs, 'conf'), 'utf8');
    const { watcher, contents } = await watched(path);
    expect(await contents()).toBe('theirs');
    const secret = new SecretFile(path);
    onTestFinished(() => secret.close());
    expect((await secret.get()).value).toBe('theirs');
    await atomicWriteFile(path, 'new');
    await expect.poll(contents).toBe('new');
    expect([mine(), theirs()]).toEqual(['mine', 'new']);
    atomicWriteFileSync(path, 'newer');
    await expect.poll(contents).toBe('newer');
    expect([mine(), theirs()]).toEqual(['mine', 'newer']);
    expect(watcher.status().state).toBe('watching');
    const { realPath, findings } = await diagnose(path);
    expect(readFileSync(String(realPath), 'utf8')).toBe('newer');
    expect(findings.map(({ id }) => id)).not.toContain('MISSING');
  });

  test.each<[string, (volume: string) => string | string[], { recursive?: boolean }?]>([
    ['a key', (volume) => `${volume}/key`],
    ['a volume', (volume) => volume],
    ['a group', (volume) => [`${volume}/key`]],
    ['a tree', (volume) => volume, { recursive: true }],
  ])('%s of a volume behind root is reported after each swap', async (_, pathOf, options) => {
    const { theirs, volume } = await scene();
    const { contents } = await watched(pathOf(`${theirs}/volume`), options);
    expect(await contents()).toBe('theirs');
    volume.publish({ key: 'next' });
    await expect.poll(contents).toBe('next');
    expect(String((await readVolume(`${theirs}/volume`)).files.get('key')?.content)).toBe('next');
  });

  test('an AtomicVolume behind root is written and read there', async () => {
    const { directory, theirs, proc } = await scene();
    const volume = new AtomicVolume(`${theirs}/volume`);
    await volume.write({ key: 'written' });
    expect(String((await volume.read()).files.get('key'))).toBe('written');
    expect(readFileSync(`${theirs}/volume/key`, 'utf8')).toBe('written');
    expect(readFileSync(`${directory}/volume/key`, 'utf8')).toBe('mine');
    const above = new AtomicVolume(`${proc}/cwd/in/../made/volume`, { createDirectory: true });
    await above.write({ key: 'made' });
    expect(readFileSync(`${theirs}/made/volume/key`, 'utf8')).toBe('made');
    await above.clear();
    await volume.clear();
  });

  test('a link that leads out of a root by an absolute path leads to the root of this process, as in the kernel', async () => {
    const { directory, theirs } = await scene();
    symlinkSync(`${directory}/conf`, `${theirs}/absolute`);
    const { contents } = await watched(`${theirs}/absolute`);
    expect(await contents()).toBe('mine');
    await atomicWriteFile(`${theirs}/absolute`, 'new');
    expect(readFileSync(`${directory}/conf`, 'utf8')).toBe('new');
  });

  test('an open file is neither read nor replaced by the text of its link', async () => {
    const { directory, theirs } = await scene();
    const fd = openSync(`${theirs}/conf`, 'r');
    onTestFinished(() => closeSync(fd));
    for (const path of [`/proc/self/fd/${fd}`, `/proc/self/task/${process.pid}/fd/${fd}`]) {
      const secret = new SecretFile(path);
      onTestFinished(() => secret.close());
      await expect(secret.get()).rejects.toMatchObject({
        message: expect.stringContaining('/proc') as string,
      });
      await expect(atomicWriteFile(path, 'new')).rejects.toMatchObject({ code: 'ERR_WRITE_NOT_FILE' });
      expect(() => atomicWriteFileSync(path, 'new')).toThrow('/proc');
    }
    for (const name of ['exe', 'ns/net'])
      await expect(readVolume(`/proc/self/${name}`)).rejects.toMatchObject({ code: 'ERR_TARGET_PATH' });
    expect(readFileSync(`${directory}/conf`, 'utf8')).toBe('mine');
  });

  test('what is behind the root of a process that ends is missing', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'in'));
    writeFileSync(join(directory, 'in/conf'), 'mine');
    const other = spawn('sleep', ['60'], { stdio: 'ignore' });
    const path = `/proc/${other.pid}/root${directory}/in/conf`;
    const clock = new FakeClock();
    const watcher = new ResilientWatcher(path, { clock });
    onTestFinished(() => watcher.close());
    await watcher.start();
    expect(String(watcher.current?.content)).toBe('mine');
    const ended = new Promise((resolve) => other.once('exit', resolve));
    other.kill('SIGKILL');
    await ended;
    for (let turns = 0; turns < 100 && watcher.current?.kind !== 'missing'; turns += 1)
      await clock.advance(1_000);
    expect(watcher.current?.kind).toBe('missing');
  });

  test('a file that is mounted by itself there is warned of, and found by doctor; one that is mounted here is not', async () => {
    const { directory, theirs, proc, other } = await scene();
    const inside = (...command: string[]): void => {
      execFileSync('nsenter', ['-t', String(other), '-m', ...command]);
    };
    writeFileSync(join(directory, 'here'), 'mine');
    execFileSync('mount', ['--bind', join(directory, 'conf'), join(directory, 'here')]);
    onTestFinished(() => void spawnSync('umount', ['-l', join(directory, 'here')]));
    writeFileSync(join(theirs, 'here'), 'theirs');
    writeFileSync(join(theirs, 'app.yaml'), '');
    inside('mount', '--bind', `${directory}/conf`, `${directory}/app.yaml`);
    const names = [`${theirs}/app.yaml`, theirs, `${proc}/task/${other}/root${directory}/app.yaml`];
    for (const path of names) {
      const { watcher } = await watched(path);
      const message = expect.stringMatching(/app.yaml" is mounted by itself/) as string;
      expect(watcher.status().warnings, path).toEqual([{ code: 'subPath', message }]);
      const ids = (await diagnose(path)).findings.map(({ id }) => id);
      expect(ids, path).toContain('FILE_MOUNT');
    }
    const { watcher } = await watched(`${theirs}/here`);
    expect(watcher.status().warnings).toEqual([]);
    const tree = await watched(theirs, { recursive: true });
    expect(tree.watcher.status().warnings).toHaveLength(1);
    inside('umount', `${directory}/app.yaml`);
    await expect
      .poll(async () => {
        await tree.watcher.check();
        return tree.watcher.status().warnings;
      })
      .toEqual([]);
  });
});
