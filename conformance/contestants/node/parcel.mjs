/** `@parcel/watcher` on the directory of the file; it takes no files, and has nothing to configure for this. */
import { dirname } from 'node:path';

import watcher from '@parcel/watcher';

import { path, show } from './show.mjs';

await watcher.subscribe(dirname(path), show);
show();
