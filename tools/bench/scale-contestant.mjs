/**
 * The process of one contestant of scale.mjs: `start` watches a directory, then every set or path it learns of is
 * sent to the parent with its moment (CLOCK_MONOTONIC, ns).
 */
import { readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';

import { builds } from './builds.mjs';
import { chokidars, watchWith } from './chokidar.mjs';

/** chokidar reports each file separately; without this delay 10 000 files would be read 10 000 times. */
const MOMENT_MS = 20;

const now = () => Number(process.hrtime.bigint());
const report = (sequence) => process.send({ sequence, at: now() });
const sequenceOf = (content) => Number(/^sequence: (\d+)\n/.exec(content.toString('latin1'))?.[1] ?? NaN);

function inotifyWatches() {
  let count = 0;
  for (const fd of readdirSync('/proc/self/fdinfo')) {
    try {
      count += readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8').split('\ninotify wd:').length - 1;
    } catch {
      // Closed meanwhile.
    }
  }
  return count;
}

/**
 * The work of a program that gets events without contents: read all files at once, then once more for all events of a
 * short time, and check whether the result is one set.
 */
function readSet(directory) {
  let last;
  let isRead = false;
  let isWanted = false;
  const read = () => {
    const sequences = new Set();
    try {
      for (const name of readdirSync(directory)) {
        if (!name.startsWith('..')) sequences.add(sequenceOf(readFileSync(join(directory, name))));
      }
    } catch {
      return; // in the middle of something
    }
    const [sequence] = sequences;
    if (sequences.size !== 1 || sequence === last) return;
    last = sequence;
    report(sequence);
  };
  return function readAll() {
    isWanted = isRead;
    if (isRead) return;
    isRead = true;
    read();
    setTimeout(() => {
      isRead = false;
      if (isWanted) readAll();
    }, MOMENT_MS);
  };
}

/** In a tree, the file that is written contains the number of the write. */
const readPath = (path) => {
  try {
    if (path.endsWith('.txt')) report(sequenceOf(readFileSync(path)));
  } catch {
    // Replaced meanwhile.
  }
};

/** Every directory below, and itself. */
function directoriesIn(directory) {
  const below = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [directory, ...below.flatMap(({ name }) => directoriesIn(join(directory, name)))];
}

const contestants = {
  /** The floor: reads after each event. It does not recover lost events, and does not see new directories. */
  'fs.watch': (kind, directory) => {
    if (kind === 'volume') {
      const onEvent = readSet(directory);
      watch(directory, (_, name) => name === '..data' && onEvent());
      return;
    }
    for (const path of directoriesIn(directory)) watch(path, (_, name) => readPath(join(path, name)));
  },

  ...Object.fromEntries(
    Object.entries(builds).map(([name, entryPoint]) => [
      name,
      (kind, directory) => resilientWatcher(entryPoint, kind, directory),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(chokidars).map(([name, module]) => [
      name,
      (kind, directory) =>
        watchWith(module, directory, kind === 'volume' ? readSet(directory) : (_, path) => readPath(path)),
    ]),
  ),

  '@parcel/watcher': async (kind, directory) => {
    const { default: parcel } = await import('@parcel/watcher');
    const onEvent = readSet(directory);
    await parcel.subscribe(
      directory,
      (_, events) => {
        if (kind === 'volume') onEvent();
        else for (const { path } of events ?? []) readPath(path);
      },
      { backend: 'inotify' },
    );
  },
};

async function resilientWatcher(entryPoint, kind, directory) {
  const { ResilientWatcher } = await import(entryPoint);
  if (kind === 'volume') {
    const watcher = new ResilientWatcher(directory);
    watcher.on('change', ({ current }) => {
      const [first] = current.files.values();
      if (first?.content) report(sequenceOf(first.content));
    });
    await watcher.start();
    return;
  }
  const watcher = new ResilientWatcher(directory, { recursive: true });
  await watcher.start();
  watcher.on('change', ({ added, changed }) => {
    for (const key of [...added, ...changed]) readPath(join(directory, key));
  });
}

let cpu;

const commands = {
  async start({ contestant, kind, directory }) {
    const heapBefore = process.memoryUsage();
    const began = now();
    await contestants[contestant](kind, directory);
    const startMs = (now() - began) / 1e6;
    global.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return {
      started: {
        startMs,
        watches: inotifyWatches(),
        heapMiB: (heapUsed + external - heapBefore.heapUsed - heapBefore.external) / 2 ** 20,
      },
    };
  },
  begin() {
    cpu = process.cpuUsage();
    return { begun: true };
  },
  stop() {
    const { user, system } = process.cpuUsage(cpu);
    return { stopped: { cpuMs: (user + system) / 1e3 } };
  },
};

process.on('message', async ({ command, ...parameters }) => {
  process.send(await commands[command](parameters));
});
