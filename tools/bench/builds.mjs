/** The builds of this library that are compared: `dist`, and with `BENCH_BEFORE=DIRECTORY` one that was made before. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const before = process.env.BENCH_BEFORE;

/** The entry point of each, by the name it is shown under. */
export const builds = {
  'resilient-watcher': new URL('../../dist/index.js', import.meta.url).href,
  ...(before && { 'resilient-watcher before': pathToFileURL(resolve(before, 'index.js')).href }),
};
