/**
 * Watches a directory in which one file is replaced by rename all the time, and prints whether the first reports and
 * `readVolume()` have it: `busy.mjs DIRECTORY`.
 */
import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

import { readVolume, ResilientWatcher } from 'resilient-watcher';

import { isSealed, seal } from './sealed.mjs';

const PERIOD_MS = 5;
const FILES = 60;

function write(directory) {
  let number = 0;
  setInterval(() => {
    writeFileSync(join(directory, 'next'), seal((number += 1)));
    renameSync(join(directory, 'next'), join(directory, 'files/busy'));
  }, PERIOD_MS);
}

function stateIn(files) {
  const busy = files.get('busy');
  if (!busy || files.size !== FILES) return 'incomplete';
  return isSealed(String(busy.content)) ? 'complete' : 'torn';
}

async function watch(directory) {
  const path = join(directory, 'files');
  mkdirSync(path);
  for (let count = 1; count < FILES; count += 1) writeFileSync(join(path, `file-${count}`), 'text');
  writeFileSync(join(path, 'busy'), seal(0));
  const writer = new Worker(new URL(import.meta.url), { workerData: directory });
  await once(writer, 'online');
  for (let count = 0; count < 6; count += 1) {
    const watcher = new ResilientWatcher(path, { recursive: count % 2 === 0 });
    const first = new Promise((resolve) => watcher.once('change', resolve));
    await watcher.start();
    console.log('first report:', stateIn((await first).current.files));
    await watcher.close();
  }
  for (let count = 0; count < 60; count += 1) console.log('read:', stateIn((await readVolume(path)).files));
  await writer.terminate();
}

if (isMainThread) await watch(process.argv[2] ?? '');
else write(workerData);
