import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const home = mkdtempSync(join(tmpdir(), 'parcel-limits-'));
const bare = join(home, 'bare');
const complete = join(home, 'complete');

beforeAll(async () => {
  await build({
    entryPoints: ['test/kernel/parcel-child.ts'],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['@parcel/watcher'],
    outfile: join(complete, 'parcel-child.mjs'),
  });
  mkdirSync(bare);
  copyFileSync(join(complete, 'parcel-child.mjs'), join(bare, 'parcel-child.mjs'));
  symlinkSync(resolve('node_modules'), join(complete, 'node_modules'));
  mkdirSync(join(bare, 'node_modules'));
});
afterAll(() => rmSync(home, { recursive: true }));

/** Far above what any of it takes: it ends a process that is frozen. */
const HANG_GUARD_MS = 30_000;

/** What the child says, or how it ended. */
function run(command: string, ...args: string[]): unknown {
  const { stdout, stderr, status, signal } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: home },
    timeout: HANG_GUARD_MS,
    killSignal: 'SIGKILL',
  });
  return status === 0 ? JSON.parse(stdout) : { status, signal, stderr };
}

function child(scenario: string, from = complete): [string, ...string[]] {
  return [process.execPath, join(from, 'parcel-child.mjs'), scenario];
}

/** Runs the scenario where the user may have only so many of an inotify resource. */
function limited(setting: string, limit: number, scenario: string): unknown {
  const script = `echo ${limit} > /proc/sys/user/${setting}; exec "$@"`;
  return run('unshare', '-Ur', 'sh', '-c', script, 'sh', ...child(scenario));
}

function canUnshare(): boolean {
  try {
    execFileSync('unshare', ['-Ur', 'sh', '-c', 'echo 1 > /proc/sys/user/max_inotify_instances'], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    console.warn('Skipped: the inotify limits cannot be set here (unshare -Ur is not permitted).');
    return false;
  }
}

describe.runIf(process.platform === 'linux' && canUnshare())('with no more than', () => {
  test('0 inotify instances it refuses and does not freeze', () => {
    expect(limited('max_inotify_instances', 0, 'watch')).toMatchObject({
      code: 'ERR_BACKEND_LIMIT',
      sysctl: 'fs.inotify.max_user_instances',
    });
  });

  test('1 inotify instance it watches', () => {
    expect(limited('max_inotify_instances', 1, 'watch')).toEqual({ heard: true, instances: 0 });
  });

  test('1 inotify instance it refuses once it has left its tree and the instance is taken, and does not freeze', () => {
    expect(limited('max_inotify_instances', 1, 'leave')).toMatchObject({ code: 'ERR_BACKEND_LIMIT' });
  });

  test('2 inotify instances it refuses after the second death and does not freeze', () => {
    expect(limited('max_inotify_instances', 2, 'die')).toEqual({
      deaths: Array(4).fill('ERR_BACKEND_DOWN'), // 2 times 2 subscriptions
      refused: 'ERR_BACKEND_LIMIT',
      instances: 2,
    });
  });

  test('1 inotify watch it refuses the second directory', () => {
    expect(limited('max_inotify_watches', 1, 'watch two')).toMatchObject({
      code: 'ERR_BACKEND_LIMIT',
      sysctl: 'fs.inotify.max_user_watches',
    });
  });
});

describe.runIf(process.platform === 'linux')('on Linux', () => {
  test('it is started at most three times after its thread died, and each death leaks at most one instance', () => {
    expect(run(...child('die'))).toEqual({
      deaths: Array(6).fill('ERR_BACKEND_DOWN'), // 3 times 2 subscriptions
      refused: 'ERR_BACKEND_UNAVAILABLE',
      instances: 3,
    });
  });
});

test('it refuses in a worker thread', () => {
  expect(run(...child('worker'))).toMatchObject({ code: 'ERR_BACKEND_UNAVAILABLE' });
});

test('it refuses when the native module is not installed', () => {
  expect(run(...child('watch', bare))).toMatchObject({
    code: 'ERR_BACKEND_UNAVAILABLE',
    message: expect.stringContaining('@parcel/watcher') as string,
  });
});
