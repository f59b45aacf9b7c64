/**
 * Watches every kind of target in a directory that does not answer, and prints what goes on meanwhile:
 * `hanging.mjs DIRECTORY`. It cannot end by itself, since one of its threads hangs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ResilientWatcher } from 'resilient-watcher';

const directory = process.argv[2] ?? '';
const targets = {
  key: [join(directory, 'volume/key')],
  volume: [join(directory, 'volume')],
  group: [[join(directory, 'one'), join(directory, 'two')]],
  directory: [directory],
  tree: [directory, { recursive: true }],
};

for (const [name, [path, options]] of Object.entries(targets)) {
  const watcher = new ResilientWatcher(path, options);
  let hasStarted = false;
  watcher.start().then(
    () => (hasStarted = true),
    () => {},
  );
  // Timers fire, and there is a thread for other calls.
  for (let ticks = 0; ticks < 3; ticks += 1) await sleep(1);
  readFileSync(import.meta.filename);
  const state = hasStarted ? 'has started' : 'waits';
  await watcher.close();
  console.log(`${name} ${state}, and is closed`);
}
console.log('done');
