/** Somebody takes permissions from a program that is not root, and gives them back. */
import { exists } from './actors/calls.js';
import { makeTree } from './actors/directories.js';
import { KUBELET, publish, type Payload } from './actors/volumes.js';
import { directories, KEYS, PAUSES_MS, type Kind } from './kinds.js';
import { anyTarget } from './scenes.js';

const TOP = '/m';
const ABOVE = `${TOP}/p`;
const TARGET = `${ABOVE}/d`;
const USER = 1_000;

/** Nothing, only entering, only listing. */
const DENIALS = [0o000, 0o311, 0o644];

export const denied: Kind = (world) => {
  const { choices, library } = world;
  library.uid = library.gid = USER;
  directories(world, TOP, ABOVE, TARGET);
  const isVolume = choices.choose(2) === 1;
  const scene = anyTarget(world, TARGET, KEYS, isVolume ? TARGET : undefined);
  const inside = ['.', 'a', 'certs', 'certs/key'].map((name) => `${TARGET}/${name}`);
  const places = [TOP, ABOVE, TARGET, ...inside];
  const rounds = Array.from({ length: 1 + choices.choose(3) }, () => ({
    before: choices.oneOf(PAUSES_MS),
    place: choices.oneOf(places),
    mode: choices.oneOf(DENIALS),
    pause: choices.oneOf(PAUSES_MS),
    isPublished: choices.choose(2) === 1,
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
    for (const { before, place, mode, pause, isPublished } of rounds) {
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
      if (!exists(fs, path)) continue;
      yield pause;
      fs.chmodSync(path, restored);
      yield;
    }
  });
  return { ...scene, isDenied: true };
};
