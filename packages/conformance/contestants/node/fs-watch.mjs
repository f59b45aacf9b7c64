/** `fs.watch` of Node.js or Bun on the file (default), or on its directory (best). https://nodejs.org/api/fs.html#fswatchfilename-options-listener */
import { watch } from 'node:fs';
import { dirname } from 'node:path';

import { configuration, paths, show } from './show.mjs';

const isBest = configuration === 'best';
for (const watched of isBest ? new Set(paths.map(dirname)) : paths) {
  const watcher = watch(watched, () => show(isBest ? paths : [watched]));
  watcher.on('error', (error) => console.error(error.message));
}
show();
