/** resilient-watcher as it is built here, with its defaults. */
import { createHash } from 'node:crypto';

import { ResilientWatcher } from '../../../dist/index.js';

const watcher = new ResilientWatcher(process.argv[2]);
watcher.on('change', ({ current }) => {
  if (current.content) console.log(createHash('sha256').update(current.content).digest('hex'));
});
watcher.on('error', (error) => console.error(error.message));
await watcher.start();
