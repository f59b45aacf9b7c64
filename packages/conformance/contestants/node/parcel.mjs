/** `@parcel/watcher` on the directory of the file; it takes no files, and has nothing to configure for this. https://github.com/parcel-bundler/watcher#subscribe */
import { dirname } from 'node:path';

import watcher from '@parcel/watcher';

import { paths, show } from './show.mjs';

for (const directory of new Set(paths.map((path) => dirname(path))))
  await watcher.subscribe(directory, () => show());
show();
