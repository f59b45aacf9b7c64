/** watchpack on the file (default); with `followSymlinks` and polling (best). */
import Watchpack from 'watchpack';

import { configuration, path, show } from './show.mjs';

const options = configuration === 'best' ? { followSymlinks: true, poll: 200, aggregateTimeout: 50 } : {};
const watchpack = new Watchpack(options);
watchpack.on('change', show);
watchpack.on('remove', show);
watchpack.watch({ files: [path], directories: [], missing: [path], startTime: Date.now() });
show();
