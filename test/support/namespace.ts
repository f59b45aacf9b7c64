/** Mounts and inotify limits are tried in namespaces of Linux, where they concern nobody else. */
import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { beforeEach, expect, test, type TestContext } from 'vitest';

const INSIDE = 'RESILIENT_WATCHER_MOUNT_NAMESPACE';

/** Skips the test and prints why. */
export function skip(context: TestContext, reason: string): never {
  console.warn(`skipped: ${context.task.name}: ${reason}`);
  return context.skip(reason);
}

/**
 * Defines the tests of a file that mounts. Run as usual, the file is one test: itself, run again in a mount namespace
 * of its own, as root there, no matter who runs it here.
 */
export function inMountNamespace(fileUrl: string, define: () => void): void {
  if (process.env[INSIDE] !== undefined) {
    define();
    return;
  }
  test('in a mount namespace of its own', { timeout: 180_000 }, async (context) => {
    const prefix = mountNamespace();
    if (!prefix) skip(context, 'neither `unshare -Urm` nor `unshare -m` may mount here');
    const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
    // One file needs one worker, and a thread is quicker to start than a process.
    const command = [process.execPath, vitest, 'run', '--pool=threads', '--no-file-parallelism'];
    const { code, output } = await run([...prefix, ...command, fileURLToPath(fileUrl)]);
    expect(code, output).toBe(0);
  });
}

let mounting: readonly string[] | null | undefined;

/** The command that runs another where it may mount. It is tried once. */
function mountNamespace(): readonly string[] | undefined {
  mounting ??= findMountNamespace() ?? null;
  return mounting ?? undefined;
}

function findMountNamespace(): readonly string[] | undefined {
  const candidates = [
    ['unshare', '-Urm'],
    ['unshare', '-m'],
  ];
  return candidates.find(([command = '', ...args]) => {
    const { status } = spawnSync(command, [...args, 'mount', '-t', 'tmpfs', 'tmpfs', '/tmp']);
    return status === 0;
  });
}

/**
 * The command that runs another in a mount namespace of its own, after a shell script that mounts. The test is skipped
 * where that is not possible.
 */
export function withMounts(context: TestContext, script: string): string[] {
  const prefix = mountNamespace() ?? skip(context, 'neither `unshare -Urm` nor `unshare -m` may mount here');
  return [...prefix, 'sh', '-c', `${script} && exec "$0" "$@"`];
}

/**
 * The command that runs another with a file system at `directory` that never answers: FUSE, whose server is the program
 * itself. The test is skipped where that cannot be mounted.
 */
export function withHangingMount(context: TestContext, directory: string): string[] {
  const mount = 'mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hanging';
  const prefix = withMounts(context, `exec 9<>/dev/fuse && ${mount} ${directory}`);
  const [command = '', ...args] = prefix;
  if (spawnSync(command, [...args, 'true']).status !== 0) skip(context, 'FUSE cannot be mounted here');
  return prefix;
}

async function run([command = '', ...args]: string[]): Promise<{ code: unknown; output: string }> {
  // A test runner inside a test runner must not take itself for a worker of the outer one.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST'));
  const env = { ...Object.fromEntries(inherited), [INSIDE]: '1' };
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { code, output };
}

/** An inotify limit of a user namespace; the errors are those of the `fs.inotify.max_user_*` of the same name. */
export type InotifyLimit = 'max_inotify_instances' | 'max_inotify_watches';

const setting = (limit: InotifyLimit, value: number): string => `echo ${value} > /proc/sys/user/${limit}`;

/** The command that runs another under this limit; undefined when that is not possible here. */
export function underLimit(limit: InotifyLimit, value: number): string[] | undefined {
  const prefix = ['unshare', '-Ur', 'sh', '-c', `${setting(limit, value)} && exec "$0" "$@"`];
  const [command = '', ...args] = prefix;
  return spawnSync(command, [...args, 'true']).status === 0 ? prefix : undefined;
}

/** Sets the limit of the namespace that the process is in. */
export function setLimit(pid: number | undefined, limit: InotifyLimit, value: number): void {
  const into = ['-t', String(pid), '-U', '--preserve-credentials'];
  const { status, stderr } = spawnSync('nsenter', [...into, 'sh', '-c', setting(limit, value)]);
  if (status !== 0) throw new Error(`nsenter: ${String(stderr)}`);
}

/** Skips the tests of a file elsewhere: they ask what only Linux answers. */
export function linuxOnly(): void {
  beforeEach((context) => {
    if (process.platform !== 'linux') skip(context, 'it needs Linux');
  });
}
