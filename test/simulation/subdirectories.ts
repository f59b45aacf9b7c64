/** A tree whose directories are replaced by others: renamed over each other, removed and made again, or moved in from outside. */
import { exists, removeAll, type Fs } from './actors/calls.js';
import { makeTree, replace } from './actors/directories.js';
import { directories, options, PAUSES_MS, type Kind } from './kinds.js';
import * as views from './views.js';
import type { Steps, World } from './world.js';

const ROOT = '/m';
const PLACES = [`${ROOT}/s`, `${ROOT}/s/e`, `${ROOT}/s/e/e`];
const OUTSIDE = '/outside';

const HOWS = ['replaced', 'made again', 'moved in', 'moved out'] as const;

/** When a program may be about to listen. */
const STARTS_MS = [0, 10, 45, 400];

interface Round {
  readonly before: number;
  readonly place: string;
  readonly how: (typeof HOWS)[number];
  readonly pause: number;
}

const filesOf = (round: number): Map<string, string> =>
  new Map(['f', 'e/f', 'e/e/f'].map((name) => [name, `${name}@${round}`]));

function* change(fs: Fs, world: World, { place, how, pause }: Round, number: number): Steps {
  const next = `${OUTSIDE}/${number}`;
  const away = `${OUTSIDE}/${number}.away`;
  if (how === 'made again') {
    yield* removeAll(fs, place);
    yield pause;
    yield* makeTree(fs, world, place, filesOf(number));
    return;
  }
  yield* makeTree(fs, world, next, filesOf(number));
  if (!exists(fs, place)) {
    yield* makeTree(fs, world, place.slice(0, place.lastIndexOf('/')), new Map());
    fs.renameSync(next, place);
    yield;
  } else if (how === 'replaced') {
    // Before anybody can look.
    Array.from(replace(fs, place, away, next, 0));
    yield;
  } else {
    yield* replace(fs, place, away, next, pause);
    if (how === 'moved out') yield* removeAll(fs, away);
  }
}

export const subdirectories: Kind = (world) => {
  const { choices } = world;
  directories(world, ROOT, OUTSIDE);
  const isMadeBefore = choices.choose(2) === 0;
  const rounds = Array.from({ length: 1 + choices.choose(3) }, (_, index): Round => ({
    before: choices.oneOf(index === 0 ? STARTS_MS : PAUSES_MS),
    place: choices.oneOf(PLACES),
    how: choices.oneOf(HOWS),
    pause: choices.oneOf(PAUSES_MS),
  }));
  const first = (fs: Fs): Steps => makeTree(fs, world, PLACES[0] ?? '', filesOf(0));
  if (isMadeBefore) Array.from(first(world.machine.process().fs));
  world.actor('administrator', function* (fs) {
    if (!isMadeBefore) yield* first(fs);
    for (const [index, round] of rounds.entries()) {
      yield round.before;
      yield* change(fs, world, round, index + 1);
      yield round.pause;
      // What is there now must be listened to.
      for (const place of PLACES)
        if (exists(fs, place)) yield* makeTree(fs, world, place, new Map([['late', `late ${index}`]]));
    }
  });
  return {
    path: ROOT,
    options: { ...options(world), recursive: true },
    isTree: true,
    unitOf: (key) => `${ROOT}/${key}`,
    see: (fs) => views.directory(fs, ROOT, true),
  };
};
