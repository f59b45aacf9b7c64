/**
 * Swaps a certificate and its key as fast as it can until its input ends: `swapping-process.mjs VOLUME`. Then says how
 * often, which is also what the last ones hold.
 */
import { setImmediate } from 'node:timers/promises';

import { AtomicVolume } from 'resilient-watcher';

const [directory] = process.argv.slice(2);
const volume = new AtomicVolume(directory, { durability: 'none' });
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();

let count = 0;
while (!isOver) {
  count += 1;
  await volume.write({ 'tls.crt': `${count}`, 'tls.key': `${count}` });
  await setImmediate();
}
process.stdout.write(`${count}`);
