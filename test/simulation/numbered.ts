/** Links that are named like those of `/proc` to open files and mappings, with ordinary targets as long as those seem to be. */
import { directories, files, options, unitOfPath, volume, type Kind } from './kinds.js';
import * as views from './views.js';

const LINKS = '/m/l';
const NAMES = ['7', '1024', 'ab12-cd34', '0'];

/** What `lstat` says of the size of such a link, and what is next to it. */
const LENGTHS = [64, 63, 65];

/** A target with as many bytes. */
function padded(directory: string, name: string, length: number): string {
  const dots = length - directory.length - name.length;
  return `${directory}${'./'.repeat(dots >> 1)}${dots % 2 === 0 ? '' : '/'}${name}`;
}

export const numbered: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, '/m', '/m/v', '/m/d', LINKS);
  const { fs } = machine.process();
  const name = choices.oneOf(NAMES);
  const isOfVolume = choices.choose(2) === 0;
  const path = `${LINKS}/${name}`;
  const target = isOfVolume
    ? padded('../v/', 'a', choices.oneOf(LENGTHS))
    : padded('../d/', 'f', choices.oneOf(LENGTHS));
  fs.symlinkSync(target, path);
  if (isOfVolume) volume(world, '/m/v', ['a', 'b']);
  else files(world, ['/m/d/f'], ['rename', 'rename', 'remove']);
  const shape = choices.oneOf(['file', 'directory', 'tree', 'group'] as const);
  const unitOf = (): string => (isOfVolume ? unitOfPath('/m/v/a') : '/m/d/f');
  const own = shape === 'tree' ? { ...options(world), recursive: true } : options(world);
  return {
    path: { file: path, directory: LINKS, tree: LINKS, group: [path] }[shape],
    options: own,
    isTree: shape === 'tree' || shape === 'directory',
    unitOf,
    see: (observer) => (shape === 'group' ? views.group(observer, [path]) : views.file(observer, path)),
  };
};
