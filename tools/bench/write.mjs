/**
 * `node tools/bench/run.mjs write`: atomic writes side by side, on a real disk and in memory, each comparison at equal
 * durability. Contenders take turns every few writes, in a random order, so that noise of the
 * machine falls on all of them alike; the ratio is that of their medians.
 *
 *     node tools/bench/write.mjs [--writes 1500] [--bytes 1024] [--sizes 0,65536,1048576] [--keys 1,10,100] [--dir /path/on/a/disk]
 */
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

import { writeFile as atomically } from 'atomically';
import { AtomicVolume } from 'resilient-watcher';
import { Writer } from 'steno';
import writeFileAtomic7 from 'write-file-atomic';

import { builds } from './builds.mjs';
import { barChart, writeChart } from './chart.mjs';
import { median, quantile } from './statistics.mjs';

// It needs Node.js 22.22: npm install --no-save write-file-atomic-8@npm:write-file-atomic@8
const { default: writeFileAtomic8 } = await import('write-file-atomic-8').catch(() => ({}));

const { values } = parseArgs({
  options: {
    writes: { type: 'string', default: '1500' },
    bytes: { type: 'string', default: '1024' },
    sizes: { type: 'string', default: '0,65536,1048576' },
    keys: { type: 'string', default: '1,10,100' },
    dir: { type: 'string', default: os.tmpdir() },
    write: { type: 'boolean', default: false },
  },
});
const writes = Number(values.writes);
/** The comparison that is repeated at other sizes: the durability that most peers offer, too. */
const AT_ALL_SIZES = 'file: never an empty or partial file after a power cut';
let data = Buffer.alloc(Number(values.bytes), 'a');

/** Few enough for all to meet the same weather, enough for each to be warm. */
const WRITES_IN_TURN = 5;

const CALLS = ['open', 'write', 'fsync', 'close', 'rename', 'mkdir', 'chmod', 'symlink', 'unlink', 'rmdir'];
const call = Object.fromEntries(CALLS.map((name) => [name, promisify(fs[name])]));
const blockingCall = Object.fromEntries(CALLS.map((name) => [name, fs[`${name}Sync`]]));

/** The floor of what leaves the event loop free: the calls that the durability needs, and no check of anything. */
const raw = (durability) => {
  let count = 0;
  return async (path, directory) => {
    const temporary = `${path}.${(count += 1)}`;
    const fd = await call.open(temporary, 'wx', 0o600);
    if (data.length > 0) await call.write(fd, data, 0, data.length, null);
    if (durability !== 'none') await call.fsync(fd);
    await call.close(fd);
    await call.rename(temporary, path);
    if (durability !== 'full') return;
    const directoryFd = await call.open(directory, 'r');
    await call.fsync(directoryFd);
    await call.close(directoryFd);
  };
};

/** The same calls as most programs would make them. */
const rawPromises = (durability) => {
  let count = 0;
  return async (path, directory) => {
    const temporary = `${path}.${(count += 1)}`;
    const handle = await fs.promises.open(temporary, 'wx', 0o600);
    if (data.length > 0) await handle.write(data, 0, data.length, null);
    if (durability !== 'none') await handle.sync();
    await handle.close();
    await fs.promises.rename(temporary, path);
    if (durability !== 'full') return;
    const directoryHandle = await fs.promises.open(directory, 'r');
    await directoryHandle.sync();
    await directoryHandle.close();
  };
};

/** The same calls while nothing else runs in the process, for as long as the disk takes. */
const rawBlocking = (durability) => {
  let count = 0;
  return (path, directory) => {
    const temporary = `${path}.${(count += 1)}`;
    const fd = fs.openSync(temporary, 'wx', 0o600);
    if (data.length > 0) fs.writeSync(fd, data, 0, data.length, null);
    if (durability !== 'none') fs.fsyncSync(fd);
    fs.closeSync(fd);
    fs.renameSync(temporary, path);
    if (durability !== 'full') return;
    const directoryFd = fs.openSync(directory, 'r');
    fs.fsyncSync(directoryFd);
    fs.closeSync(directoryFd);
  };
};

/** A contender for each build. */
const ours = async (durability) => {
  const contenders = {};
  for (const [name, entryPoint] of Object.entries(builds)) {
    const { atomicWriteFile } = await import(entryPoint);
    const shown = name.replace('resilient-watcher', 'atomicWriteFile');
    contenders[shown] = (path) => atomicWriteFile(path, data, { durability });
  }
  return contenders;
};

const steno = () => {
  let writer;
  return (path, directory) => {
    if (writer?.directory !== directory) writer = { directory, to: new Writer(path) };
    return writer.to.write(data);
  };
};

/** A new revision with the calls that kubelet makes, and `fsync` of all that is new with `full`; no check of anything. */
const rawVolume = (
  durability,
  { open, write, fsync, close, rename, mkdir, chmod, symlink, unlink, rmdir },
) => {
  let count = 0;
  let old;
  const sync = async (directory) => {
    const fd = await open(directory, 'r');
    await fsync(fd);
    await close(fd);
  };
  return async (path, files) => {
    const name = `..raw_${(count += 1)}`;
    const revision = join(path, name);
    await mkdir(revision, 0o700);
    for (const [key, content] of Object.entries(files)) {
      const fd = await open(join(revision, key), 'wx', 0o644);
      await write(fd, content, 0, content.length, null);
      if (durability === 'full') await fsync(fd);
      await close(fd);
    }
    await chmod(revision, 0o755);
    if (durability === 'full') await sync(revision);
    await symlink(name, join(path, '..data_tmp'));
    await rename(join(path, '..data_tmp'), join(path, '..data'));
    if (!old) for (const key of Object.keys(files)) await symlink(`..data/${key}`, join(path, key));
    if (durability === 'full') await sync(path);
    if (old) {
      for (const key of Object.keys(files)) await unlink(join(old, key));
      await rmdir(old);
    }
    old = revision;
  };
};

const ourVolume = (durability) => {
  let volume;
  return (path, files) => (volume ??= new AtomicVolume(path, { durability })).write(files);
};

/** Of each comparison the first is the floor. Peers are only where their durability is the same. */
const comparisons = {
  'full: data and name survive a power cut': {
    'raw calls': raw('full'),
    'raw calls, fs/promises': rawPromises('full'),
    'raw calls, blocking': rawBlocking('full'),
    ...(await ours('full')),
  },
  'file: never an empty or partial file after a power cut': {
    'raw calls': raw('file'),
    'raw calls, fs/promises': rawPromises('file'),
    'raw calls, blocking': rawBlocking('file'),
    'write-file-atomic 7': (path) => writeFileAtomic7(path, data, { fsync: true, mode: 0o600 }),
    ...(writeFileAtomic8 && {
      'write-file-atomic 8': (path) => writeFileAtomic8(path, data, { fsync: true, mode: 0o600 }),
    }),
    atomically: (path) => atomically(path, data, { fsync: true, mode: 0o600 }),
    ...(await ours('file')),
  },
  'none: atomic for running programs': {
    'raw calls': raw('none'),
    'raw calls, fs/promises': rawPromises('none'),
    'raw calls, blocking': rawBlocking('none'),
    'write-file-atomic 7': (path) => writeFileAtomic7(path, data, { fsync: false, mode: 0o600 }),
    ...(writeFileAtomic8 && {
      'write-file-atomic 8': (path) => writeFileAtomic8(path, data, { fsync: false, mode: 0o600 }),
    }),
    atomically: (path) => atomically(path, data, { fsync: false, mode: 0o600 }),
    steno: steno(),
    ...(await ours('none')),
  },
};

const shuffled = (names) =>
  names
    .map((name) => ({ name, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name);
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/** @param chart the name of its chart, without where it was measured. */
async function compare(title, contenders, directory, place, chart) {
  const names = Object.keys(contenders);
  const latencies = Object.fromEntries(names.map((name) => [name, []]));
  const pathOf = (name) => join(directory, name.replace(/\W+/g, '-'));
  const turn = async (name) => {
    for (let count = 0; count < WRITES_IN_TURN; count += 1) {
      const begun = performance.now();
      await contenders[name](pathOf(name), directory);
      latencies[name].push(performance.now() - begun);
    }
  };
  for (let done = 0; done < writes; done += WRITES_IN_TURN) {
    for (const name of shuffled(names)) await turn(name);
  }
  const measured = Object.fromEntries(
    // The first writes are for the compiler.
    names.map((name) => [name, latencies[name].slice(writes / 10)]),
  );
  const floor = median(measured[names[0]]);
  console.log(`\n${title}`);
  console.table(
    Object.fromEntries(
      names.map((name) => {
        const p50 = median(measured[name]);
        return [
          name,
          {
            'ops/s at p50': Math.round(1000 / p50),
            [`: ${names[0]}`]: Number((p50 / floor).toFixed(2)),
            'p50 ms': Number(p50.toFixed(3)),
            'p99 ms': Number(quantile(measured[name], 0.99).toFixed(3)),
            'mean ms': Number(mean(measured[name]).toFixed(3)),
          },
        ];
      }),
    ),
  );
  writeChart(
    `write-${place}-${chart}`,
    barChart({
      title: `${title.split(',', 1)[0]}, ${data.length} bytes, ${place}, p50, ms`,
      bars: names.map((name) => ({ label: name, value: median(measured[name]) })),
    }),
  );
}

/** Revisions of which every file is new, one after another; more of the small ones. */
async function compareVolumes(keys, durability, directory) {
  const contenders = {
    'raw calls': rawVolume(durability, call),
    'raw calls, blocking': rawVolume(durability, blockingCall),
    AtomicVolume: ourVolume(durability),
  };
  const names = Object.keys(contenders);
  const latencies = Object.fromEntries(names.map((name) => [name, []]));
  const rounds = Math.max(20, Math.min(200, Math.floor(writes / keys / 2)));
  for (const name of names) fs.mkdirSync(join(directory, name));
  for (let round = 0; round < rounds; round += 1) {
    const content = Buffer.from(`${round}`.padEnd(Number(values.bytes), 'a'));
    const files = Object.fromEntries(Array.from({ length: keys }, (_, index) => [`key-${index}`, content]));
    for (const name of shuffled(names)) {
      const begun = performance.now();
      await contenders[name](join(directory, name), files);
      latencies[name].push(performance.now() - begun);
    }
  }
  const measured = names.map((name) => [name, latencies[name].slice(rounds / 10)]);
  const floor = median(measured[0][1]);
  return Object.fromEntries(
    measured.map(([name, times]) => {
      const p50 = median(times);
      const row = { 'p50 ms': Number(p50.toFixed(2)), ': raw calls': Number((p50 / floor).toFixed(2)) };
      return [
        `${keys} keys, ${durability}: ${name}`,
        { ...row, 'p90 ms': Number(quantile(times, 0.9).toFixed(2)) },
      ];
    }),
  );
}

const KNOWN = {
  0xef53: 'ext4',
  0x01021994: 'tmpfs',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0x794c7630: 'overlayfs',
};

console.log(
  `Node ${process.version}, ${os.cpus().length} × ${os.cpus()[0]?.model}, ${data.length} bytes a file`,
);
for (const [place, root] of Object.entries({ disk: values.dir, memory: '/dev/shm' })) {
  if (!fs.existsSync(root)) continue;
  const directory = fs.mkdtempSync(join(root, 'bench-write-'));
  try {
    const type = fs.statfsSync(directory).type >>> 0;
    console.log(`\n== ${root}: ${KNOWN[type] ?? `file system 0x${type.toString(16)}`} ==`);
    for (const [title, contenders] of Object.entries(comparisons)) {
      const own = join(directory, title.replace(/\W+/g, '-'));
      fs.mkdirSync(own);
      await compare(title, contenders, own, place, title.split(/\W/, 1)[0].toLowerCase());
    }
    const usual = data;
    for (const size of values.sizes.split(',').map(Number)) {
      data = Buffer.alloc(size, 'a');
      const own = join(directory, `bytes-${size}`);
      fs.mkdirSync(own);
      const title = `${AT_ALL_SIZES}, ${size} bytes`;
      await compare(title, comparisons[AT_ALL_SIZES], own, place, `file-${size}`);
    }
    data = usual;
    console.log('\nA revision of a volume');
    const rows = {};
    for (const durability of ['none', 'full']) {
      for (const keys of values.keys.split(',').map(Number)) {
        const own = join(directory, `volume-${durability}-${keys}`);
        fs.mkdirSync(own);
        Object.assign(rows, await compareVolumes(keys, durability, own));
      }
    }
    console.table(rows);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
