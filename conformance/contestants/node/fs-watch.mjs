/** `fs.watch` on the file (default), or on its directory (best). */
import { watch } from 'node:fs';
import { dirname } from 'node:path';

import { configuration, path, show } from './show.mjs';

const watcher = watch(configuration === 'best' ? dirname(path) : path, show);
watcher.on('error', (error) => console.error(error.message));
show();
