/**
 * `npm run test:disk`, as root on Linux: real operations on real file systems, as a seed says, by one process, while watchers of all
 * kinds in another one are judged on the way and at rest. `--seeds N`, `--seed FIRST`, `--minutes N`, `--on ext4`. It mounts in
 * namespaces of its own, which end with it, also if it is killed. Ends with 0, and says why, where it cannot mount.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { Judged, KINDS } from './watchers.mjs';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    /** As many seeds as this takes. */
    minutes: { type: 'string' },
    on: { type: 'string' },
  },
});
const INSIDE = 'RESILIENT_WATCHER_DISK_TEST';
const self = fileURLToPath(import.meta.url);

/** How long everything that has happened may take to be told, ms; nothing but a hang takes as long. */
const LONGEST_REST_MS = 20_000;

function skip(what) {
  console.log(`skipped: test:disk: ${what}`);
  if (process.env.SKIPPED_LIST) appendFileSync(process.env.SKIPPED_LIST, `test:disk: ${what}\n`);
}

const made = (command, ...args) => {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr).trim().split('\n').at(-1);
};

/** What makes a file system at a mount point, from an image if it needs a disk; returns why it failed, if it did. */
const onImage = (command, ...args) => ({
  make: (image, point) => {
    writeFileSync(image, '');
    truncateSync(image, 512 * 1_048_576);
    return made(command, ...args, image) ?? made('mount', '-o', 'loop', image, point);
  },
});
const FILE_SYSTEMS = {
  tmpfs: { make: (_image, point) => made('mount', '-t', 'tmpfs', 'tmpfs', point) },
  // Inodes of 128 bytes have times in whole seconds, and no time of birth.
  'ext4-small-inodes': onImage('mkfs.ext4', '-q', '-I', '128'),
  ext4: onImage('mkfs.ext4', '-q'),
  btrfs: onImage('mkfs.btrfs', '-q'),
  xfs: onImage('mkfs.xfs', '-q'),
  bindfs: {
    make(image, point) {
      mkdirSync(image);
      const timeouts = 'attr_timeout=0,entry_timeout=0,negative_timeout=0';
      return made('bindfs', '--no-allow-other', '-o', timeouts, image, point);
    },
  },
};

/** Returns the mount points, by the name of their file system. */
function mountAll(folder) {
  const points = new Map();
  for (const [name, { make }] of Object.entries(FILE_SYSTEMS)) {
    if (values.on !== undefined && values.on !== name) continue;
    const point = join(folder, name);
    mkdirSync(point);
    const failure = make(join(folder, `${name}.image`), point);
    if (failure === undefined) points.set(name, point);
    else skip(`${name}: ${failure}`);
  }
  return points;
}

/** Runs one seed. Returns what is wrong. */
async function play(seed, point) {
  const root = join(point, `seed-${seed}`);
  for (const path of [root, `${root}.outside`, ...['v', 'd/e', 'l', 's/e'].map((name) => `${root}/${name}`)])
    mkdirSync(path, { recursive: true });
  for (const [name, key] of Object.entries({ a: 'a', b: 'b', key: 'certs/key' }))
    symlinkSync(`../v/${key}`, `${root}/l/${name}`);
  const actor = spawn(
    process.execPath,
    [fileURLToPath(new URL('actor.mjs', import.meta.url)), `${seed}`, root],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const ended = once(actor, 'exit');
  // Without a resync, events have to tell everything; FUSE has none that the library believes, and is polled.
  const options = { resyncIntervalMs: 0, pollIntervalMs: 300 };
  const judged = KINDS.map((name) => new Judged(name, root, options));
  try {
    for (const one of judged) {
      one.start();
      await sleep(seed % 3);
    }
    const [code] = await ended;
    const faults = code === 0 ? [] : [`the actor ends with ${code}`];
    const until = performance.now() + LONGEST_REST_MS;
    const differences = () => judged.flatMap((one) => one.difference() ?? []);
    while (differences().length > 0 && performance.now() < until) await sleep(20);
    return [...faults, ...differences(), ...judged.flatMap((one) => one.faults)];
  } finally {
    await Promise.all(judged.map((one) => one.close()));
    // What FUSE still hides goes with the file system.
    for (const path of [root, `${root}.outside`])
      await rm(path, { recursive: true, maxRetries: 5, retryDelay: 20 }).catch(() => undefined);
  }
}

async function inside(folder) {
  const points = mountAll(folder);
  if (points.size === 0) return 0;
  const names = [...points.keys()];
  const began = performance.now();
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  const first = Number(values.seed);
  const isOver = (seed) =>
    minutes === undefined
      ? seed >= first + Number(values.seeds)
      : performance.now() - began > minutes * 60_000;
  let failed = 0;
  let seed = first;
  for (; !isOver(seed); seed += 1) {
    const name = names[seed % names.length];
    const faults = await play(seed, points.get(name));
    if (faults.length === 0) continue;
    failed += 1;
    console.log(`✗ seed ${seed} on ${name}: node test/disk/run.mjs --seed ${seed} --seeds 1 --on ${name}`);
    for (const fault of faults.slice(0, 5)) console.log(`  ${fault.slice(0, 400)}`);
  }
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(`${seed - first} seeds on ${names.join(', ')} in ${seconds} s: ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

if (process.env[INSIDE] !== undefined) process.exitCode = await inside(process.env[INSIDE]);
else if (process.platform !== 'linux' || process.getuid() !== 0)
  skip('it mounts file systems, so it needs Linux and root');
else {
  const spaces = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const folder = mkdtempSync(join(tmpdir(), 'test-disk-'));
  const failure = made(
    'setpriv',
    '--pdeathsig',
    'KILL',
    'unshare',
    ...spaces,
    'mount',
    '-t',
    'tmpfs',
    'tmpfs',
    folder,
  );
  if (failure !== undefined) skip(`no mount namespace: ${failure}`);
  else {
    const script = 'mount -t tmpfs -o size=3g tmpfs "$0" && exec "$@"';
    const command = ['sh', '-c', script, folder, process.execPath, self, ...process.argv.slice(2)];
    // Its end is the end of everything there, whatever ends this process.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...spaces, ...command], {
      stdio: 'inherit',
      env: { ...process.env, [INSIDE]: folder },
    });
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill('SIGKILL'));
    const [code] = await once(child, 'exit');
    process.exitCode = code ?? 1;
  }
  rmSync(folder, { recursive: true, force: true });
}
