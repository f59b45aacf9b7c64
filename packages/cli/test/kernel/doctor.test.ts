/** `doctor` on real mounts and under real limits. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Diagnosis } from '@resilient-watcher/cli/doctor';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { runCli, startCli, type ProgramOptions } from '../../../../test/support/program.js';
import { linuxOnly, skip, underLimit, withMounts } from '../../../../test/support/namespace.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

linuxOnly();

/** What it finds at a path, by id. */
async function doctor(
  path: string,
  options: ProgramOptions,
): Promise<{ code: unknown; ids: string[]; page: Diagnosis }> {
  const { code, stdout, stderr } = await runCli(['doctor', path, '--json'], options);
  if (stdout === '') throw new Error(stderr);
  const page = JSON.parse(stdout) as Diagnosis;
  return { code, ids: page.findings.map(({ id }) => id), page };
}

function volume(directory = join(temporaryDirectory(), 'volume')): KubeletVolume {
  const mounted = new KubeletVolume(directory);
  mounted.publish({ n: '0' });
  return mounted;
}

test('a file that is bind-mounted from a volume, as subPath does it, can never change', async (context) => {
  const mounted = volume();
  const mountPoint = join(temporaryDirectory(), 'app.yaml');
  writeFileSync(mountPoint, '');
  const prefix = withMounts(context, `mount --bind ${mounted.path('n')} ${mountPoint}`);
  const { code, ids, page } = await doctor(mountPoint, { prefix });
  expect([code, ids]).toEqual([3, ['SUBPATH']]);
  expect(page.findings[0]?.fix).toMatch(/^Mount the whole volume/);
});

test('any other file that is mounted by itself can never be replaced', async (context) => {
  const directory = temporaryDirectory();
  const [source, target] = [join(directory, 'source'), join(directory, 'target')];
  for (const path of [source, target]) writeFileSync(path, '');
  const { code, ids } = await doctor(target, {
    prefix: withMounts(context, `mount --bind ${source} ${target}`),
  });
  expect([code, ids]).toEqual([3, ['FILE_MOUNT']]);
});

test('the files of a container without Node.js are examined behind /proc/PID/root', async (context) => {
  const mounted = volume();
  const directory = temporaryDirectory();
  const single = join(directory, 'app.yaml');
  writeFileSync(single, '');
  const script = `mount -t tmpfs tmpfs /mnt && cp -a ${mounted.directory} /mnt/config && mount --bind ${mounted.path('n')} ${single}`;
  const [command = '', ...args] = withMounts(context, script);
  const application = spawn(command, [...args, 'sh', '-c', 'echo ready; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void application.kill('SIGKILL'));
  await once(application.stdout, 'data');
  const root = `/proc/${application.pid}/root`;
  expect(await doctor(`${root}/mnt/config`, {})).toMatchObject({ code: 0, ids: [] });
  expect(await doctor(`${root}${single}`, {})).toMatchObject({ code: 3, ids: ['SUBPATH'] });
  const missing = await doctor(`${root}/mnt/config/m`, {});
  expect([missing.ids, missing.page.findings[0]?.message]).toEqual([
    ['DANGLING'],
    expect.stringMatching(/mnt\/config\/m", which does not exist; there is "n"$/),
  ]);
});

test('a tmpfs, which Secrets are mounted from, is fine and shown as such', async (context) => {
  const mountPoint = temporaryDirectory();
  const copy = `mount -t tmpfs tmpfs ${mountPoint} && cp -a ${volume().directory} ${mountPoint}/volume`;
  const { code, ids, page } = await doctor(join(mountPoint, 'volume'), { prefix: withMounts(context, copy) });
  expect([code, ids]).toEqual([0, []]);
  expect(page.mounts).toContainEqual({ path: mountPoint, type: 'tmpfs' });
});

test('FUSE reports no events: updates are found by polling', async (context) => {
  const directory = temporaryDirectory();
  const source = volume(join(directory, 'source'));
  const mountPoint = join(directory, 'mounted');
  mkdirSync(mountPoint);
  const prefix = withMounts(context, `bindfs --no-allow-other ${source.directory} ${mountPoint}`);
  const [command = '', ...args] = prefix;
  if (spawnSync(command, [...args, 'true']).status !== 0) {
    skip(context, 'no FUSE file system: bindfs is not installed or cannot mount');
  }
  const { code, ids, page } = await doctor(join(mountPoint, 'n'), { prefix });
  expect([code, ids]).toEqual([4, ['NO_EVENTS_FS']]);
  expect(page.mounts).toContainEqual({ path: mountPoint, type: 'FUSE' });
  const program = startCli(['watch', mountPoint], { prefix });
  await program.until(/WARN .*is on FUSE, which reports no events; it is polled/);
  await program.until(/watching/);
  source.publish({ n: '1' });
  await program.until(/mounted: changed: n\n/);
  expect(await program.terminated()).toBe(0);
});

test.each([
  ['max_inotify_instances', 'INOTIFY_INSTANCES'],
  ['max_inotify_watches', 'INOTIFY_WATCHES'],
] as const)('%s of 0 is found by trying, and means polling', async (limit, id) => {
  const prefix = underLimit(limit, 0);
  if (!prefix) return;
  const { code, ids } = await doctor(volume().directory, { prefix });
  expect([code, ids]).toEqual([4, [id]]);
});
