/**
 * Several watchers of one process on the same directories. They share native watches, and what they look up for one event:
 * each is told what it would be told alone, whoever else comes and goes.
 */
import { KEYS, KINDS, options, unitOfPath, type Scene } from '../kinds.js';
import { anyTarget, PLAIN, SCENES, TARGET } from '../scenes.js';
import * as views from '../views.js';
import { Violation, type World } from '../world.js';
import { checkFollowed, follow, type Followed } from './following.js';

const REST_MS = 1_500;

/** Two resyncs, or the longest delay of a restart, and what settles after them, ms. */
const LOSSY_REST_MS = 12_000;

const PAUSES_MS = [0, 1, 30, 300];

type See = Scene['see'];

const PATHS: Readonly<Record<string, readonly string[]>> = {
  'a key': ['/m/v/a'],
  'another key': ['/m/v/certs/key'],
  'a link': ['/m/l/a'],
  'a file': ['/m/d/f'],
  'a file above': ['/m/h'],
  'keys of a volume': ['/m/v/a', '/m/v/certs/key'],
  'a link and a key': ['/m/l/key', '/m/v/a'],
  files: ['/m/d/f', '/m/d/g'],
};

const DIRECTORIES = ['/m/v', '/m/v/certs', '/m/w', '/m/d', '/m/l', '/m'];

/** A target in the directories of the kind `around`. */
function around(world: World): Scene {
  const { choices } = world;
  const names = Object.keys(PATHS);
  const at = choices.choose(names.length + 2 * DIRECTORIES.length);
  const paths = PATHS[names[at] ?? ''];
  if (paths) return { ...ofFiles(paths), options: options(world) };
  const path = DIRECTORIES[(at - names.length) % DIRECTORIES.length] ?? '/m';
  const isRecursive = at - names.length >= DIRECTORIES.length;
  const see: See = (fs) =>
    path.endsWith('/certs') ? views.inside(fs, path) : views.directory(fs, path, isRecursive);
  return {
    path,
    options: isRecursive ? { ...options(world), recursive: true } : options(world),
    isTree: isRecursive || ['/m/d', '/m/l', '/m'].includes(path),
    unitOf: (key) => unitOfPath(`${path}/${key}`),
    see,
  };
}

function ofFiles(paths: readonly string[]): Omit<Scene, 'options'> {
  const [first = ''] = paths;
  const path = paths.length === 1 ? first : paths;
  const keyOf = (key: string): string => (path === first ? key.slice(key.lastIndexOf('/') + 1) : key);
  return {
    path,
    unitOf: (key) => unitOfPath(path === first ? first : key),
    see: (fs) => new Map([...views.group(fs, paths)].map(([key, text]) => [keyOf(key), text])),
  };
}

/** Lets others change directories. Returns how to draw a target in them. */
function scenes(world: World): () => Scene {
  const kind = world.choices.oneOf(['around', 'renamed', 'recreated']);
  const scene = { ...KINDS, ...SCENES }[kind]?.(world);
  if (kind === 'around') return () => around(world);
  return scene?.unitOf('', '') === TARGET
    ? () => anyTarget(world, TARGET, KEYS, TARGET)
    : () => anyTarget(world, TARGET, PLAIN);
}

/** Other programs take all inotify watches that are left, or all instances, and give them back. Returns which. */
export function limits(world: World): 'watches' | 'instances' | undefined {
  const { choices, machine } = world;
  const what = choices.oneOf([undefined, undefined, 'watches', 'instances'] as const);
  if (!what) return undefined;
  const [before, pause] = [choices.oneOf(PAUSES_MS), choices.oneOf([...PAUSES_MS, 3_000])];
  const usual = machine.limits[what];
  const set = (limit: number): void => {
    machine.limits[what] = limit;
    world.note('others', `leave ${limit} ${what}`);
  };
  void world.sleep(before).then(async () => {
    set(machine.count(what) + choices.choose(3));
    await world.sleep(pause);
    set(usual);
  });
  return what;
}

/** @param isDeafened whether something keeps the watchers from being told of events. */
export async function together(world: World, isDeafened = false): Promise<void> {
  const { choices } = world;
  const target = scenes(world);
  const isLimited = limits(world) !== undefined || isDeafened;
  const count = 2 + choices.choose(3);
  const followed: Followed[] = [];
  const closed = new Set<Followed>();
  const lives: Promise<unknown>[] = [];
  for (let number = 0; number < count; number += 1) {
    const one = follow(world, target());
    followed.push(one);
    const [before, after] = [choices.oneOf(PAUSES_MS), choices.oneOf(PAUSES_MS)];
    const leaves = choices.choose(4) === 1;
    const live = async (): Promise<void> => {
      await world.sleep(before);
      await one.watching.start();
      if (!leaves) return;
      await world.sleep(after);
      closed.add(one);
      await one.watching.close();
    };
    lives.push(live());
  }
  try {
    await world.run(world.isLossy || isLimited ? LOSSY_REST_MS : REST_MS);
    await world.through(Promise.all(lives), 'start() or close()');
    for (const one of followed) {
      if (closed.has(one)) one.watching.check();
      else await judged(world, one, isLimited);
    }
  } finally {
    await world.through(Promise.all(followed.map(({ watching }) => watching.close())), 'close()');
    await world.rest(3_000);
  }
  const { watches } = world.library.leftovers();
  if (watches > 0) throw new Violation(7, `after close(), ${watches} watches are left`);
}

async function judged(world: World, one: Followed, isLimited: boolean): Promise<void> {
  try {
    await checkFollowed(world, one, isLimited);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    const { path, options: given } = one.scene;
    const of = `${String(path)}${given.recursive === true ? ' (tree)' : ''}`;
    throw new Violation(error.invariant, `of ${of}: ${error.message}`);
  }
}
