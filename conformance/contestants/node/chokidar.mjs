/** chokidar on the file (default); on its directory (directory); the same, polling, after writes have ended (best). */
import { dirname } from 'node:path';

import { watch } from 'chokidar';

import { configuration, path, show } from './show.mjs';

const best = {
  usePolling: true,
  interval: 100,
  awaitWriteFinish: { stabilityThreshold: 100, pollInterval: 20 },
  depth: 1,
};
const options = configuration === 'best' ? best : {};
const watcher = watch(configuration === 'default' ? path : dirname(path), options);
watcher.on('all', show).on('ready', show);
watcher.on('error', (error) => console.error(error.message));
