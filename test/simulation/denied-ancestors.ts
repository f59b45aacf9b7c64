/**
 * Directories above a target that may be entered but not listed, or neither, become so one after another, and are as before one
 * after another. Then one of them, or the target, is replaced: a program has listened to them again since the last event.
 */
import { exists, type Fs } from './actors/calls.js';
import { makeTree, replace } from './actors/directories.js';
import { KUBELET, publish } from './actors/volumes.js';
import { needsOf, USER } from './denied.js';
import { directories, KEYS, PAUSES_MS, type Kind } from './kinds.js';
import { anyTarget, TARGET } from './scenes.js';
import type { Steps, World } from './world.js';

const TOP = '/m';
const ABOVE = `${TOP}/p`;
const PLACES = [TOP, ABOVE, TARGET];

/** To enter, or nothing. */
const DENIALS = [0o711, 0o711, 0o000];

/** A poll, the delays of a backend that failed, and what settles after them, ms. */
const LONG_MS = 5_000;

export const deniedAncestors: Kind = (world: World) => {
  const { choices, library } = world;
  library.uid = library.gid = USER;
  directories(world, TOP, ABOVE, TARGET);
  const isVolume = choices.choose(2) === 1;
  const scene = anyTarget(world, TARGET, KEYS, isVolume ? TARGET : undefined);
  const denials = Array.from({ length: 1 + choices.choose(3) }, () => ({
    place: choices.oneOf(PLACES),
    mode: choices.oneOf(DENIALS),
    pause: choices.oneOf(PAUSES_MS),
  }));
  const isReversed = choices.choose(2) === 1;
  /** How many of them stay as they are. */
  const kept = choices.oneOf([0, 0, 1]);
  const pauses = denials.map(() => choices.oneOf(PAUSES_MS));
  const replaced = choices.oneOf([ABOVE, TARGET]);
  let revision = 0;
  function* fill(fs: Fs, directory: string): Steps {
    revision += 1;
    const payload = new Map(KEYS.map((key) => [key, `${key}@${revision}`]));
    yield* makeTree(fs, world, directory, isVolume ? new Map() : payload);
    if (!isVolume) return;
    const at = { fs, world, directory, unit: TARGET, manner: KUBELET };
    yield* publish(at, `..2030_01_01_00_00_00.${revision}`, payload);
  }
  world.actor('administrator', function* (fs) {
    yield* fill(fs, TARGET);
    for (const { place, mode, pause } of denials) {
      yield pause;
      fs.chmodSync(place, mode);
      yield;
    }
    const places = [...new Set(denials.map(({ place }) => place))];
    if (isReversed) places.reverse();
    for (const [index, place] of places.slice(kept).entries()) {
      yield pauses[index] ?? 0;
      fs.chmodSync(place, 0o755);
      yield;
    }
    if (kept > 0) return;
    yield LONG_MS;
    // This is heard, and so everything is listened to again.
    yield* fill(fs, TARGET);
    yield LONG_MS;
    const away = `${replaced}.away`;
    yield* fill(fs, `${replaced}.new${TARGET.slice(replaced.length)}`);
    if (!exists(fs, away)) yield* replace(fs, replaced, away, `${replaced}.new`, 0);
  });
  const options = { ...scene.options, resyncIntervalMs: choices.oneOf([0, 5_000]) };
  return { ...scene, options, needs: needsOf({ ...scene, options }) };
};
