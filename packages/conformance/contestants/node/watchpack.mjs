/** watchpack on the file (default); with `followSymlinks` and polling (best). https://github.com/webpack/watchpack#api */
import Watchpack from 'watchpack';

import { configuration, paths, show } from './show.mjs';

const options = configuration === 'best' ? { followSymlinks: true, poll: 200, aggregateTimeout: 50 } : {};
const watchpack = new Watchpack(options);
watchpack.on('change', (path) => show([path]));
watchpack.on('remove', (path) => show([path]));
watchpack.watch({ files: paths, directories: [], missing: paths, startTime: Date.now() });
show();
