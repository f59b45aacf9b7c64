/**
 * The watchers that are compared. `start(path, directory, onEvent, report)` begins watching the key `path` of the
 * volume `directory`. A contestant that reports only that something happened calls `onEvent`, which reads the file at
 * once; one that delivers the content calls `report` with it. Resolves to a function that stops the contestant, or to
 * a text with the reason why it cannot take part.
 */
import { watch, watchFile, unwatchFile } from 'node:fs';

import { builds } from './builds.mjs';
import { contestantsOf, watchWith } from './chokidar.mjs';

const contestants = {
  'fs.watch + readFileSync (the floor)': (path, directory, onEvent) => {
    const watcher = watch(directory, onEvent);
    return () => watcher.close();
  },

  ...Object.fromEntries(
    Object.entries(builds).flatMap(([name, entryPoint]) =>
      ['fs', 'parcel'].map((backend) => [
        `${name}, ${backend}`,
        (path, directory, onEvent, report) => resilientWatcher(entryPoint, backend, path, report),
      ]),
    ),
  ),

  '@parcel/watcher on the directory': async (path, directory, onEvent) => {
    const { default: parcel } = await import('@parcel/watcher');
    const subscription = await parcel.subscribe(directory, onEvent, { backend: 'inotify' });
    return () => subscription.unsubscribe();
  },

  ...contestantsOf(
    (module, path, directory, onEvent) => watchWith(module, path, onEvent),
    (module, path, directory, onEvent) => watchWith(module, directory, onEvent),
  ),

  'watchpack on the file': async (path, directory, onEvent) => {
    const { default: Watchpack } = await import('watchpack');
    const watchpack = new Watchpack({ aggregateTimeout: 0, followSymlinks: true });
    // Without followSymlinks it sees none of the swaps. `aggregated` would come a timer later.
    watchpack.on('change', onEvent);
    watchpack.on('remove', onEvent);
    watchpack.watch({ files: [path], directories: [], missing: [], startTime: Date.now() });
    return () => watchpack.close();
  },

  'fs.watchFile, 1 s': (path, directory, onEvent) => {
    watchFile(path, { interval: 1_000 }, onEvent);
    return () => unwatchFile(path);
  },
};

async function resilientWatcher(entryPoint, backend, path, report) {
  const { ResilientWatcher } = await import(entryPoint);
  const watcher = new ResilientWatcher(path, { backend });
  watcher.on('change', ({ current }) => report(current.content));
  watcher.on('unreadable', ({ error }) => console.error(error.message));
  watcher.on('error', (error) => console.error(error.message));
  await watcher.start();
  const status = watcher.status();
  if (status.backend === backend) return () => watcher.close();
  await watcher.close();
  return `backend '${backend}' cannot be had: ${status.degraded?.message ?? 'not part of this build'}`;
}

export default contestants;
