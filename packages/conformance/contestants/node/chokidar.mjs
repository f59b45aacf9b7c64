/** chokidar of the version in the name of the package on the file (default), or on its directory (best). https://github.com/paulmillr/chokidar#api */
import { dirname } from 'node:path';

import { paths, show, configuration } from './show.mjs';

/** `best`: stats each 100 ms, and waits for the end of writes. */
const polling = {
  usePolling: true,
  interval: 100,
  awaitWriteFinish: { stabilityThreshold: 100, pollInterval: 20 },
};
const [, module, mode] = /^(\S+) (\S+)$/.exec(configuration);
const { watch } = await import(module);
const watched = mode === 'default' ? paths : [...new Set(paths.map((path) => dirname(path)))];
const watcher = watch(watched, mode === 'best' ? { depth: 1, ...polling } : {});
watcher.on('all', (_, changed) => show(mode === 'default' ? [changed] : paths));
watcher.on('ready', () => show());
watcher.on('error', (error) => console.error(error.message));
