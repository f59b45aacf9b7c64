/** Links to one directory, which come and go: its files are shown once, under the first of the links by name. */
import { exists, type Fs } from './actors/calls.js';
import { directories, files, options, PAUSES_MS, type Kind } from './kinds.js';
import * as views from './views.js';

const ROOT = '/m';
const TARGET = '/o';
const LINKS = ['x', 'y', 'a/z'].map((name) => `${ROOT}/${name}`);

/** The link that leads to the directory, by its key. */
function shownBy(fs: Fs): string | undefined {
  const keys = LINKS.filter((path) => exists(fs, path)).map((path) => path.slice(ROOT.length + 1));
  return keys.sort()[0];
}

export const aliases: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, ROOT, `${ROOT}/a`, TARGET, `${TARGET}/e`);
  const { fs } = machine.process();
  for (const path of LINKS) if (choices.choose(3) !== 2) fs.symlinkSync(TARGET, path);
  files(world, [`${TARGET}/f`, `${TARGET}/e/g`], ['rename', 'rename', 'remove']);
  const rounds = Array.from({ length: 1 + choices.choose(4) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    path: choices.oneOf(LINKS),
  }));
  world.actor('administrator', function* (calls) {
    for (const { before, path } of rounds) {
      yield before;
      if (exists(calls, path)) calls.unlinkSync(path);
      else calls.symlinkSync(TARGET, path);
      yield;
    }
  });
  return {
    path: ROOT,
    options: { ...options(world), recursive: { followLinks: true } },
    isTree: true,
    isOfLast: true,
    unitOf: (key) => `${ROOT}/${key}`,
    see(observer) {
      const link = shownBy(observer);
      const shown = link === undefined ? [] : [...views.directory(observer, TARGET, true)];
      return new Map(shown.map(([key, text]) => [`${link ?? ''}/${key}`, text]));
    },
  };
};
