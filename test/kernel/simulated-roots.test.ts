/**
 * The links of `/proc` to the root directory of a process, in the simulated machine and in the kernel: the same calls give the
 * same answers, errors and events.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import fs, {
  constants,
  mkdirSync,
  readFileSync,
  type BigIntStats,
  type Dirent,
  type FSWatcher,
} from 'node:fs';

import { expect, onTestFinished, test } from 'vitest';

import { Machine } from '../simulation/machine/machine.js';
import type { SimulatedFs } from '../simulation/machine/node-fs.js';
import { inMountNamespace } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** The name of a call without `Sync`, and a path. */
type Call = readonly [name: string, path: string];

/** The link of the simulated machine to our own root directory. */
const OWN = '/proc/1/root';

const OTHER_USER = { uid: 1_000, gid: 1_000 };

/** One side of the comparison. */
interface Side {
  readonly fs: SimulatedFs;
  /** The link to the root directory of a container. */
  readonly link: string;
  /** A directory here. */
  readonly here: string;
  /** What these calls give another user: an error code, if they fail. */
  readonly toOthers: (calls: readonly Call[]) => (string | undefined)[];
  /** The container ends. */
  readonly end: () => void;
  /** Hands over events until this holds, or for a while. */
  readonly drain: (isEnough: () => boolean) => Promise<void>;
}

function codesOf(fs: object, calls: readonly Call[]): (string | undefined)[] {
  return calls.map(([name, path]) => {
    try {
      (fs as Record<string, (path: string) => unknown>)[`${name}Sync`]?.(path);
      return 'none';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  });
}

const CODES = `${String(codesOf)}; console.log(JSON.stringify(codesOf(require('fs'), JSON.parse(process.argv[1]))))`;

/** A process whose root directory is that of a tmpfs, in a mount namespace of its own. */
async function kernelSide(here: string): Promise<Side> {
  const root = `${here}/root`;
  mkdirSync(root);
  const script = `mount -t tmpfs -o mode=755 tmpfs ${root} && cd ${root} && mkdir -m 755 old && pivot_root . old && cd / && echo ready && read _`;
  const container: ChildProcess = spawn('unshare', ['-m', 'sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void container.kill('SIGKILL'));
  await new Promise((resolve) => container.stdout?.once('data', resolve));
  return {
    fs: fs as unknown as SimulatedFs,
    link: `/proc/${container.pid}/root`,
    here,
    toOthers: (calls) =>
      JSON.parse(
        execFileSync(process.execPath, ['-e', CODES, JSON.stringify(calls)], {
          encoding: 'utf8',
          ...OTHER_USER,
          cwd: '/',
        }),
      ) as string[],
    end: () => void container.kill('SIGKILL'),
    async drain(isEnough) {
      await expect.poll(isEnough).toBe(true);
    },
  };
}

function simulatedSide(here: string): Side {
  const machine = new Machine({ random: () => 0, tickMs: 0, now: () => 1_700_000_000_000 });
  const { fs: root } = machine.process();
  let path = '';
  for (const name of here.slice(1).split('/')) root.mkdirSync((path += `/${name}`), 0o700);
  for (const directory of ['/proc', '/proc/1', '/proc/7']) root.mkdirSync(directory, 0o555);
  const link = '/proc/7/root';
  for (const each of [link, OWN]) root.symlinkSync('/', each);
  machine.linkRoot(link, 'tmpfs');
  machine.linkRoot(OWN);
  const program = machine.process();
  program.fs.mkdirSync(`${link}/old`, 0o755);
  return {
    fs: program.fs,
    link,
    here,
    toOthers: (calls) => codesOf(machine.process(OTHER_USER).fs, calls),
    end: () => machine.linkRoot(link, 'tmpfs'),
    drain: () => Promise.resolve(void program.deliver()),
  };
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_DIRECTORY, O_NOFOLLOW } = constants;
/** Node.js has no constant for it. */
const O_PATH = 0o10_000_000;

/** Whether this is root, and there are other users: not in a user namespace of its own. */
const HAS_OTHERS =
  process.geteuid?.() === 0 && /\b4294967295\b/.test(readFileSync('/proc/self/uid_map', 'utf8'));

/** Calls in their order: names without `Sync`, and arguments. `L` stands for the link, `H` for the directory here. */
const CALLS: readonly (readonly [name: string, ...args: unknown[]])[] = [
  ['lstat', 'L'],
  ['stat', 'L'],
  ['readlink', 'L'],
  ['readlink', 'L/'],
  ['readlink', 'L/.'],
  ['lstat', 'L/'],
  ['lstat', 'L/.'],
  ['lstat', 'L/..'],
  ['lstat', 'L/./..'],
  ['readdir', 'L'],
  ['mkdir', 'L/d', 0o755],
  ['symlink', 'd/f', 'L/relative'],
  ['symlink', '../d/f', 'L/d/upwards'],
  ['symlink', '/d/f', 'L/absolute'],
  ['symlink', '../../..', 'L/d/top'],
  ['open', 'L/d/f', O_WRONLY | O_CREAT, 0o644],
  ['lstat', 'L/d/f'],
  ['stat', 'L/relative'],
  ['stat', 'L/d/upwards'],
  ['stat', 'L/absolute'],
  ['readdir', 'L/d/top'],
  ['readdir', 'L/..'],
  ['readdir', 'L/d/../..'],
  ['rename', 'L/d/f', 'L/d/g'],
  ['rename', 'L/d/g', 'H/g'],
  ['link', 'L/d/g', 'H/g'],
  ['link', 'L/d/g', 'L/g'],
  ['symlink', 'L/d', 'H/into'],
  ['readdir', 'H/into'],
  ['lstat', 'H/into/../g'],
  ['mkdir', 'L', 0o755],
  ['mkdir', 'L/', 0o755],
  ['mkdir', 'L/.', 0o755],
  ['rmdir', 'L/.'],
  ['rmdir', 'L/..'],
  ['unlink', 'L/d'],
  ['open', 'L', O_RDONLY | O_DIRECTORY],
  ['open', 'L', O_RDONLY | O_NOFOLLOW],
  ['open', 'L', O_PATH | O_NOFOLLOW],
  ['open', 'L/.', O_RDONLY | O_NOFOLLOW],
  ['open', 'L/d', O_RDONLY],
  ['statfs', 'L'],
];

/** The same for the link of a process to our own root directory. */
const CALLS_OF_OWN: typeof CALLS = [
  ['lstat', 'L'],
  ['readlink', 'L'],
  ['mkdir', 'LH/own', 0o755],
  ['lstat', 'H/own'],
  ['lstat', 'L/..H/own'],
  ['rename', 'LH/own', 'H/other'],
  ['open', 'LH/other', O_RDONLY],
  ['symlink', '/', 'H/root'],
  ['rmdir', 'LH/rootH/other'],
  ['lstat', 'H/other'],
];

type Answering = Pick<Side, 'fs' | 'link' | 'here'>;

function answersOf(side: Answering, calls: typeof CALLS): unknown[] {
  return calls.map(([name, ...args]) => [name, ...args, answerOf(side, name, args)]);
}

/** What a call answers, as far as the two can be compared. */
function answerOf(side: Answering, name: string, given: readonly unknown[]): unknown {
  const calls = side.fs as unknown as Record<string, (...args: unknown[]) => unknown>;
  const shown = (text: string): string => text.replaceAll(side.link, 'L').replaceAll(side.here, 'H');
  const args = given.map((arg) =>
    typeof arg === 'string' ? arg.replace(/^L/, side.link).replaceAll('H', side.here) : arg,
  );
  if (name === 'lstat' || name === 'stat') args.push({ bigint: true });
  if (name === 'readdir') args.push({ withFileTypes: true });
  try {
    const answer = calls[`${name}Sync`]?.(...args);
    if (name === 'open') return shown(opened(side, Number(answer)));
    if (name === 'mkdir') return undefined;
    if (name === 'statfs') return (answer as { type: number }).type;
    if (Array.isArray(answer)) return (answer as Dirent[]).map((entry) => entry.name);
    if (typeof answer === 'string') return shown(answer);
    if (answer === undefined) return undefined;
    const { mode, nlink, uid, gid, size } = answer as BigIntStats;
    const isDirectory = (answer as BigIntStats).isDirectory();
    return { mode, uid, gid, size: isDirectory ? 0n : size, nlink: isDirectory ? 0n : nlink };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === undefined ? message : shown(message);
  }
}

/** Where a descriptor leads. */
function opened(side: Answering, fd: number): string {
  try {
    return side.fs.readlinkSync(`/proc/self/fd/${fd}`);
  } finally {
    side.fs.closeSync(fd);
  }
}

inMountNamespace(import.meta.url, () => {
  test('a root directory of another mount namespace is reached as in the kernel', async () => {
    const here = temporaryDirectory();
    const kernel = await kernelSide(here);
    const machine = simulatedSide(here);
    expect(answersOf(machine, CALLS)).toEqual(answersOf(kernel, CALLS));
  });

  test('the own root directory is reached as in the kernel', () => {
    const [here, there] = [temporaryDirectory(), temporaryDirectory()];
    const kernel = { fs: fs as unknown as SimulatedFs, link: '/proc/self/root', here };
    const machine = { ...simulatedSide(there), link: OWN };
    expect(answersOf(machine, CALLS_OF_OWN)).toEqual(answersOf(kernel, CALLS_OF_OWN));
  });

  test('what is listened to there ends with the container as in the kernel', async () => {
    const here = temporaryDirectory();
    const events = async (side: Side, count: number): Promise<string[]> => {
      const received: string[] = [];
      side.fs.mkdirSync(`${side.link}/d`, 0o755);
      const watcher: FSWatcher = side.fs.watch(`${side.link}/d`);
      onTestFinished(() => watcher.close());
      watcher.on('change', (type, name) => received.push(`${type} ${String(name)}`));
      side.fs.mkdirSync(`${side.link}/d/e`, 0o755);
      await side.drain(() => received.length > 0);
      side.end();
      await side.drain(() => received.length >= count);
      return received;
    };
    const simulated = await events(simulatedSide(here), 0);
    expect(simulated.length).toBeGreaterThan(1);
    expect(await events(await kernelSide(here), simulated.length)).toEqual(simulated);
  });
});

test('a root directory of another user is not reached, as in the kernel', { skip: !HAS_OTHERS }, async () => {
  const here = temporaryDirectory();
  const codes = [await kernelSide(here), simulatedSide(here)].map(({ link, toOthers }) =>
    toOthers([
      ['lstat', link],
      ['readlink', link],
      ['stat', link],
      ['lstat', `${link}/.`],
      ['readdir', link],
      ['readdir', `${link}/old`],
    ]),
  );
  expect(codes[1]).toEqual(codes[0]);
});
