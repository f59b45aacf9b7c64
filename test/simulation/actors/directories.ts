/** What happens to whole directories: made, renamed away and back, replaced, mounted over. */
import type { Mount } from '../machine/mounts.js';
import type { Steps, World } from '../world.js';
import { makeDirectories, write, type Fs } from './calls.js';
import type { Payload } from './volumes.js';

/** As `mkdir -p` and `cp -r`: plain files, written in place. */
export function* makeTree(fs: Fs, world: World, directory: string, files: Payload): Steps {
  yield* makeDirectories(fs, directory);
  for (const [name, text] of files) {
    const path = `${directory}/${name}`;
    const above = name.lastIndexOf('/');
    if (above > 0) yield* makeDirectories(fs, `${directory}/${name.slice(0, above)}`);
    world.begins(path);
    yield* write(fs, path, text, 2);
    world.ends(path);
    yield;
  }
}

/** As `mv DIRECTORY AWAY`, and back. */
export function* renameAndBack(fs: Fs, directory: string, pauseMs: number): Steps {
  const away = `${directory}.away`;
  fs.renameSync(directory, away);
  yield pauseMs;
  fs.renameSync(away, directory);
  yield;
}

/** As `mv DIRECTORY AWAY` and `mv OTHER DIRECTORY`. */
export function* replace(fs: Fs, directory: string, away: string, other: string, pauseMs: number): Steps {
  fs.renameSync(directory, away);
  yield pauseMs;
  fs.renameSync(other, directory);
  yield;
}

/** Mounts something over a directory, and unmounts it if `restMs` is given. No event tells either. */
export function* mountOver(
  world: World,
  directory: string,
  source: { readonly type: string; readonly bind?: string; readonly isReadOnly?: boolean },
  files: Steps,
  restMs?: number,
): Steps {
  const mount: Mount = world.machine.mount(directory, source);
  world.acts('administrator', `mounts ${source.type} over ${directory}`);
  yield;
  yield* files;
  if (restMs === undefined) return;
  yield restMs;
  world.machine.unmount(mount, { isLazy: true });
  world.acts('administrator', `unmounts ${directory}`);
  yield;
}
