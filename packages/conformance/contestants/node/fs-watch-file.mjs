/** `fs.watchFile`, each 5,007 ms (default) or each 500 ms (best). https://nodejs.org/api/fs.html#fswatchfilefilename-options-listener */
import { watchFile } from 'node:fs';

import { configuration, paths, show } from './show.mjs';

const options = configuration === 'best' ? { interval: 500 } : {};
for (const path of paths) watchFile(path, options, () => show([path]));
show();
