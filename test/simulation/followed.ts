/** A tree that follows links: to a volume, to a directory in its revision, and to a key. */
import { directories, FILES, files, options, VOLUME, volume, type Kind } from './kinds.js';
import * as views from './views.js';

const LINKS: Readonly<Record<string, string>> = { v: '../v', certs: '../v/certs', a: '../v/a' };

export const followed: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, '/m', VOLUME, FILES);
  const { fs } = machine.process();
  const names = choices.oneOf([['v', 'certs', 'a'], ['v'], ['certs'], ['certs', 'a'], ['v', 'a']]);
  for (const name of names) fs.symlinkSync(LINKS[name] ?? '', `${FILES}/${name}`);
  world.canBeEmptied = choices.choose(2) === 1;
  volume(world, VOLUME, ['a', 'certs/key']);
  files(world, [`${FILES}/f`]);
  const isOfVolume = (key: string): boolean => /^(a$|v\/|certs\/)/.test(key);
  return {
    path: FILES,
    options: { ...options(world), recursive: { followLinks: true } },
    isTree: true,
    unitOf: (key) => (isOfVolume(key) ? VOLUME : `${FILES}/${key}`),
    see(observer) {
      const view = views.directory(observer, FILES, true);
      for (const name of names.filter((each) => each !== 'a')) {
        const below = views.directory(observer, `${FILES}/${name}`, true);
        for (const [key, text] of below) view.set(`${name}/${key}`, text);
      }
      return view;
    },
  };
};
