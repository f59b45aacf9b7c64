/** `fs.watchFile`, each 5,007 ms (default) or each 500 ms (best). */
import { watchFile } from 'node:fs';

import { configuration, path, show } from './show.mjs';

watchFile(path, configuration === 'best' ? { interval: 500 } : {}, show);
show();
