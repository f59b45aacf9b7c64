/** Programs that use another spelling of a name, where a lookup folds names. */
import { inPlace, type Program } from './editors.js';
import { exists, write, type Fs } from './calls.js';

/** Capital letters, on macOS decomposed. */
export function respelled(path: string): string {
  const at = path.lastIndexOf('/') + 1;
  const name = path.slice(at).toUpperCase();
  return path.slice(0, at) + (process.platform === 'darwin' ? name.normalize('NFD') : name);
}

function* moved(fs: Fs, from: string, to: string): ReturnType<Program> {
  if (!exists(fs, from)) return;
  fs.renameSync(from, to);
  yield;
}

export const SPELLED_EDITS: Readonly<Record<string, Program>> = {
  respell: (fs, _world, path) => moved(fs, path, respelled(path)),

  respellBack: (fs, _world, path) => moved(fs, path, path),

  *replaceAs(fs, world, path, text, pauseMs) {
    const temporary = `${path}.tmp`;
    world.writes(temporary);
    yield* write(fs, temporary, `renamed, ${text}`, 2);
    world.ends(temporary);
    yield pauseMs;
    fs.renameSync(temporary, respelled(path));
    yield;
  },

  *writeAs(fs, world, path, text, pauseMs) {
    yield* inPlace(world, path, write(fs, respelled(path), text, 2, pauseMs));
  },

  *removeAs(fs, _world, path) {
    if (!exists(fs, path)) return;
    fs.unlinkSync(respelled(path));
    yield;
  },
};
