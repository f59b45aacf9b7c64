/** `Deno.watchFs` on the file (default), or on its directory (best). https://docs.deno.com/api/deno/~/Deno.watchFs */
import { dirname } from 'node:path';

import { configuration, paths, show } from './show.mjs';

const watched = configuration === 'best' ? [...new Set(paths.map((path) => dirname(path)))] : paths;
const events = Deno.watchFs(watched, { recursive: false });
show();
for await (const event of events) show(configuration === 'best' ? paths : event.paths);
