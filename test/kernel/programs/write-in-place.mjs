/**
 * Writes sealed texts over each other in one file, in several pieces. After each burst of them the file is whole;
 * it prints a line, and waits for one before the next burst.
 *
 *     node write-in-place.mjs FILE truncate|unlink|chmod BURSTS TEXTS
 */
import { closeSync, fchmodSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { seal } from './sealed.mjs';

const [file, manner, bursts, texts] = process.argv.slice(2);
const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

for (let number = 1, burst = 0; burst < Number(bursts); burst += 1) {
  for (let text = 0; text < Number(texts); text += 1, number += 1) {
    const bytes = Buffer.from(seal(number));
    if (manner !== 'truncate') unlinkSync(file);
    const fd = openSync(file, manner === 'truncate' ? 'w' : 'wx');
    const piece = Math.ceil(bytes.length / 5);
    for (let at = 0; at < bytes.length; at += piece) {
      writeSync(fd, bytes.subarray(at, at + piece));
      if (manner === 'chmod') fchmodSync(fd, 0o600);
    }
    closeSync(fd);
  }
  console.log('whole');
  await orders.next();
}
process.stdin.destroy();
