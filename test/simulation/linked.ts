/** Links on the way: to a volume, and in its revisions. */
import { write } from './actors/calls.js';
import { KUBELET, OLD_KUBELET, publisher } from './actors/volumes.js';
import {
  AT_ONCE,
  directories,
  FILES,
  files,
  GRACE_MS,
  options,
  pausesOf,
  PAUSES_MS,
  payloads,
  VOLUME,
  type Kind,
} from './kinds.js';
import { anyTarget } from './scenes.js';
import * as views from './views.js';
import type { World } from './world.js';

const LINKS = '/m/l';
const OTHER = '/m/w';
const KEYS = ['a', 'certs/key'];

/** `again` leads to another link, and `top` to a directory above the volume. */
const TARGETS = { a: '../v/a', key: '../v/certs/key', certs: '../v/certs', v: '../v', again: 'v', top: '/m' };

/** What may be watched. Only what comes second leads through `v`. */
const PLACES = {
  files: [
    ['a', 'key', 'certs/key', 'top/v/a'],
    ['v/a', 'v/certs/key', 'again/a', 'top/l/v/certs/key'],
  ],
  directories: [
    ['top/v', 'certs'],
    ['v', 'again', 'top/l/again', 'v/certs', 'again/certs'],
  ],
};

/** The path of a target leads to a volume through links, later perhaps to another one. */
function byLinks(world: World): ReturnType<Kind> {
  const { choices, machine } = world;
  directories(world, '/m', VOLUME, OTHER, LINKS);
  const { fs } = machine.process();
  for (const [name, target] of Object.entries(TARGETS)) fs.symlinkSync(target, `${LINKS}/${name}`);
  const isMoved = choices.choose(3) === 1;
  world.canBeEmptied = choices.choose(3) === 1;
  for (const [index, directory] of (isMoved ? [VOLUME, OTHER] : [VOLUME]).entries()) {
    const published = payloads(world, KEYS, index * 10);
    const pauses = pausesOf(world, published);
    world.actor(`kubelet ${index}`, (calls) =>
      publisher({ fs: calls, world, directory, unit: VOLUME, manner: KUBELET }, published, pauses),
    );
  }
  if (isMoved) {
    const before = choices.oneOf(PAUSES_MS);
    world.actor('administrator', function* (calls) {
      yield before;
      calls.symlinkSync('../w', `${LINKS}/v_tmp`);
      yield;
      calls.renameSync(`${LINKS}/v_tmp`, `${LINKS}/v`);
      yield;
    });
  }
  const common = { heldMs: isMoved ? GRACE_MS : AT_ONCE, unitOf: () => VOLUME };
  const oneOf = (places: string[][]): string =>
    `${LINKS}/${choices.oneOf((isMoved ? places.slice(1) : places).flat())}`;
  // The last file that a link led to may be read after it leads elsewhere, as with `open`.
  const shape = choices.oneOf(['group', 'directory', 'tree', isMoved ? 'group' : 'file'] as const);
  if (shape === 'file') {
    const path = oneOf(PLACES.files);
    return { ...common, path, options: options(world), see: (observer) => views.file(observer, path) };
  }
  if (shape === 'group') {
    const paths = [...new Set([oneOf(PLACES.files), oneOf(PLACES.files)])];
    return {
      ...common,
      path: paths,
      options: options(world),
      see: (observer) => views.group(observer, paths),
    };
  }
  const path = oneOf(PLACES.directories);
  const isTree = shape === 'tree';
  return {
    ...common,
    path,
    options: { ...options(world), recursive: isTree },
    isTree,
    see: (observer) =>
      path.endsWith('certs') ? views.inside(observer, path) : views.directory(observer, path, isTree),
  };
}

/**
 * Each revision has links: to a key of its own, and out of the volume, to a file that is replaced or removed. With links that come
 * after the swap, no state of that file would be published before the last of them.
 */
function withLinks(world: World): ReturnType<Kind> {
  const { choices, machine } = world;
  const outside = `${FILES}/f`;
  directories(world, '/m', VOLUME, FILES);
  Array.from(write(machine.process().fs, outside, 'the first text'));
  // Its file outside is told when it is at rest.
  const unit = `${VOLUME} and ${outside}`;
  const links = choices.oneOf([{ out: '../../d/f' }, { key: 'certs/key' }, { key: 'a', out: outside }]);
  const published = payloads(world, KEYS);
  const pauses = pausesOf(world, published);
  world.actor('kubelet', (fs) =>
    publisher({ fs, world, directory: VOLUME, unit, manner: OLD_KUBELET, links }, published, pauses),
  );
  if ('out' in links) files(world, [outside], ['rename', 'rename', 'remove']);
  const keys = choices.oneOf([
    [...Object.keys(links), 'a'],
    [...KEYS, ...Object.keys(links)],
  ]);
  return { ...anyTarget(world, VOLUME, keys, unit), heldMs: GRACE_MS };
}

export const linked: Kind = (world) => (world.choices.choose(2) === 1 ? withLinks(world) : byLinks(world));
