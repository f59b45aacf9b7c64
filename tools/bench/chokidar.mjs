/**
 * The versions of chokidar that are compared. Version 6 needs Node 22.22, and is compared where it is installed:
 * `npm install --no-save chokidar-6@npm:chokidar@6`.
 */
import { existsSync } from 'node:fs';

const [major, minor] = process.versions.node.split('.').map(Number);
const isThere = existsSync(new URL('../../node_modules/chokidar-6', import.meta.url));
const hasNode = major > 22 || (major === 22 && minor >= 22);

/** The module of each, by the name it is shown under. */
export const chokidars = {
  'chokidar 5': 'chokidar',
  ...(isThere && hasNode && { 'chokidar 6': 'chokidar-6' }),
};

/** Watches `paths`, and resolves once chokidar is ready to the function that ends it. */
export async function watchWith(module, paths, onEvent) {
  const { watch } = await import(module);
  const watcher = watch(paths, { ignoreInitial: true });
  watcher.on('all', onEvent);
  await new Promise((resolve) => watcher.once('ready', resolve));
  return () => watcher.close();
}

/** A contestant on the file and one on the directory for each version; both begin with `start(module, ...)`. */
export function contestantsOf(onFile, onDirectory) {
  return Object.fromEntries(
    Object.entries(chokidars).flatMap(([name, module]) => [
      [`${name} on the file`, (...parameters) => onFile(module, ...parameters)],
      [`${name} on the directory`, (...parameters) => onDirectory(module, ...parameters)],
    ]),
  );
}
