/** Removes what an earlier build has left: files that the next one may not write any more. */
import { rmSync } from 'node:fs';

import { packages, root } from './packages.mjs';

for (const { folder } of packages) rmSync(`${root}${folder}dist`, { recursive: true, force: true });
