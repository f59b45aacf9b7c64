/**
 * `npm run bench:write`: atomic writes side by side, on a real disk and in memory, each comparison at equal
 * durability. Contenders take turns within a round, so that noise of the machine falls on all of them; the
 * ratio is the median of the rounds' ratios.
 *
 *     node test/bench/write.mjs [--rounds 9] [--bytes 1024] [--dir /path/on/a/disk]
 */
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

import { writeFile as atomically } from 'atomically';
import { atomicWriteFile, AtomicVolume } from 'resilient-watcher';
import { Writer } from 'steno';
import writeFileAtomic from 'write-file-atomic';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    bytes: { type: 'string', default: '1024' },
    dir: { type: 'string', default: os.tmpdir() },
  },
});
const rounds = Number(values.rounds);
const data = Buffer.alloc(Number(values.bytes), 'a');

/** Long enough in a round to be measured, short enough for many rounds. */
const ROUND_MS = 250;

const call = Object.fromEntries(
  ['open', 'write', 'fsync', 'close', 'rename'].map((name) => [name, promisify(fs[name])]),
);

/** The floor: the calls that the durability needs, and no check of anything. */
const raw = (durability) => {
  let count = 0;
  return async (path, directory) => {
    const temporary = `${path}.${(count += 1)}`;
    const fd = await call.open(temporary, 'wx', 0o600);
    await call.write(fd, data, 0, data.length, null);
    if (durability !== 'none') await call.fsync(fd);
    await call.close(fd);
    await call.rename(temporary, path);
    if (durability !== 'full') return;
    const directoryFd = await call.open(directory, 'r');
    await call.fsync(directoryFd);
    await call.close(directoryFd);
  };
};

const ours =
  (durability, more = {}) =>
  (path) =>
    atomicWriteFile(path, data, { durability, ...more });

const steno = () => {
  let writer;
  return (path, directory) => {
    if (writer?.directory !== directory) writer = { directory, to: new Writer(path) };
    return writer.to.write(data);
  };
};

const volume = (durability) => {
  let count = 0;
  return (path) =>
    new AtomicVolume(path, { createDirectory: true, durability }).write({
      'tls.crt': data,
      'tls.key': `${(count += 1)}`,
    });
};

/** Of each comparison the first is the floor. Peers are only where their durability is the same. */
const comparisons = {
  'full: data and name survive a power cut': {
    'raw calls': raw('full'),
    atomicWriteFile: ours('full'),
  },
  'file: never an empty or partial file after a power cut': {
    'raw calls': raw('file'),
    'write-file-atomic': (path) => writeFileAtomic(path, data, { fsync: true, mode: 0o600 }),
    atomically: (path) => atomically(path, data, { fsync: true, mode: 0o600 }),
    atomicWriteFile: ours('file'),
  },
  'none: atomic for running programs': {
    'raw calls': raw('none'),
    'write-file-atomic': (path) => writeFileAtomic(path, data, { fsync: false, mode: 0o600 }),
    atomically: (path) => atomically(path, data, { fsync: false, mode: 0o600 }),
    steno: steno(),
    atomicWriteFile: ours('none'),
    'atomicWriteFile, sweep: false': ours('none', { sweep: false }),
  },
  'AtomicVolume, two files': {
    "'none', as kubelet": volume('none'),
    "'full'": volume('full'),
  },
};

async function measure(write, path, directory) {
  const latencies = [];
  const end = performance.now() + ROUND_MS;
  for (let now = performance.now(); now < end;) {
    await write(path, directory);
    const after = performance.now();
    latencies.push(after - now);
    now = after;
  }
  return latencies;
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
const ascending = (numbers) => [...numbers].sort((a, b) => a - b);
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

async function compare(title, contenders, directory) {
  const names = Object.keys(contenders);
  const all = Object.fromEntries(names.map((name) => [name, []]));
  const ratios = Object.fromEntries(names.map((name) => [name, []]));
  const pathOf = (name) => join(directory, name.replace(/\W+/g, '-'));
  for (const name of names) await contenders[name](pathOf(name), directory);
  for (let round = 0; round < rounds; round += 1) {
    const means = {};
    // Another one begins each round.
    for (const index of names.keys()) {
      const name = names[(index + round) % names.length];
      const latencies = await measure(contenders[name], pathOf(name), directory);
      all[name].push(...latencies);
      means[name] = mean(latencies);
    }
    for (const name of names) ratios[name].push(means[names[0]] / means[name]);
  }
  console.log(`\n${title}`);
  console.table(
    Object.fromEntries(
      names.map((name) => {
        const sorted = ascending(all[name]);
        return [
          name,
          {
            'ops/s': Math.round(1000 / mean(sorted)),
            [`x ${names[0]}`]: Number(quantile(ascending(ratios[name]), 0.5).toFixed(2)),
            'p50 ms': Number(quantile(sorted, 0.5).toFixed(3)),
            'p99 ms': Number(quantile(sorted, 0.99).toFixed(3)),
          },
        ];
      }),
    ),
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
for (const root of [values.dir, '/dev/shm']) {
  if (!fs.existsSync(root)) continue;
  const directory = fs.mkdtempSync(join(root, 'bench-write-'));
  try {
    const type = fs.statfsSync(directory).type >>> 0;
    console.log(`\n== ${root}: ${KNOWN[type] ?? `file system 0x${type.toString(16)}`} ==`);
    for (const [title, contenders] of Object.entries(comparisons)) {
      const own = join(directory, title.replace(/\W+/g, '-'));
      fs.mkdirSync(own);
      await compare(title, contenders, own);
    }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
