/** Somebody takes permissions from a program that is not root, and gives them back, or not. */
import { exists, type Fs } from './actors/calls.js';
import { makeTree } from './actors/directories.js';
import { KUBELET, publish, type Payload } from './actors/volumes.js';
import { directories, KEYS, options, PAUSES_MS, type Kind, type Scene } from './kinds.js';
import type { Needs } from './readability.js';
import { anyTarget } from './scenes.js';
import * as views from './views.js';
import type { World } from './world.js';

const TOP = '/m';
const ABOVE = `${TOP}/p`;
const TARGET = `${ABOVE}/d`;
const LINKS = `${TOP}/l`;
export const USER = 1_000;

/** Nothing, only entering, only listing. */
const DENIALS = [0o000, 0o311, 0o644];

const dirname = (path: string): string => path.slice(0, path.lastIndexOf('/'));

/** What is read of a target in these directories. */
export function needsOf({ path, options: { recursive }, see }: Scene): (fs: Fs) => Needs {
  return (fs) => {
    const keys = [...see(fs).keys()];
    const above = [TOP, ABOVE, TARGET];
    if (typeof path !== 'string') return { above, directories: [], files: path };
    if (fs.inodeAt(path)?.kind !== 'directory') return { above, directories: [], files: [path] };
    const root = fs.inodeAt(`${path}/..data`) ? `${path}/..data` : path;
    const all = keys.map((key) => `${root}/${key}`);
    const listed = [root, ...all.map(dirname)];
    if (root !== path) return { above, directories: listed, files: all, perhaps: [path] };
    // Only a file that is not in a volume is told without its content.
    return recursive === undefined
      ? { above, directories: listed, files: all }
      : { above, directories: listed, files: [], contents: all };
  };
}

/** A target on a volume, or in a plain directory with links into it. */
function linked(world: World): Scene {
  const shape = world.choices.oneOf(['inside', 'links', 'link'] as const);
  const common = { options: options(world), unitOf: () => TARGET };
  const path = { inside: `${TARGET}/certs`, links: LINKS, link: `${LINKS}/a` }[shape];
  if (shape === 'inside') return { ...common, path, see: (fs) => views.inside(fs, path) };
  if (shape === 'links')
    return { ...common, path, isTree: true, see: (fs) => views.directory(fs, path, false) };
  const see: Scene['see'] = (fs) => new Map([...views.group(fs, [path])].map(([, text]) => ['a', text]));
  return { ...common, path, see };
}

export const denied: Kind = (world) => {
  const { choices, library } = world;
  library.uid = library.gid = USER;
  directories(world, TOP, ABOVE, TARGET, LINKS);
  const root = world.machine.process().fs;
  root.symlinkSync('../p/d/a', `${LINKS}/a`);
  root.symlinkSync('../p/d/certs/key', `${LINKS}/key`);
  const isVolume = choices.choose(2) === 1;
  const scene =
    isVolume && choices.choose(3) === 1
      ? linked(world)
      : anyTarget(world, TARGET, KEYS, isVolume ? TARGET : undefined);
  const inside = ['.', 'a', 'certs', 'certs/key'].map((name) => `${TARGET}/${name}`);
  const places = [TOP, ABOVE, TARGET, ...inside, LINKS];
  const rounds = Array.from({ length: 1 + choices.choose(3) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    place: choices.oneOf(places),
    mode: choices.oneOf(DENIALS),
    pause: choices.oneOf(PAUSES_MS),
    isPublished: choices.choose(2) === 1,
    isKept: choices.choose(6) === 1,
  }));
  world.actor('administrator', function* (fs) {
    let revision = 0;
    function* next() {
      const payload: Payload = new Map(KEYS.map((key) => [key, `${key}@${revision}`]));
      if (isVolume) {
        const at = { fs, world, directory: TARGET, manner: KUBELET };
        yield* publish(at, `..2030_01_01_00_00_00.${revision}`, payload);
      } else yield* makeTree(fs, world, TARGET, payload);
      revision += 1;
    }
    yield* next();
    for (const { before, place, mode, pause, isPublished, isKept } of rounds) {
      yield before;
      const inRevision = isVolume && place.startsWith(`${TARGET}/`);
      const path = inRevision
        ? `${TARGET}/${fs.readlinkSync(`${TARGET}/..data`)}/${place.slice(TARGET.length + 1)}`
        : place;
      const restored = Number(fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })?.mode) & 0o777;
      fs.chmodSync(path, mode);
      yield pause;
      if (isPublished) yield* next();
      // The next revision has modes of its own.
      if (isKept || !exists(fs, path)) continue;
      yield pause;
      fs.chmodSync(path, restored);
      yield;
    }
  });
  return { ...scene, needs: needsOf(scene) };
};
