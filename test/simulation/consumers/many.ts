/**
 * Thousands of entries in one target: what the library does at the start, after one change and at a resync is
 * proportional to them. A loop within a loop does not hide behind a limit on system calls.
 */
import { ResilientWatcher, type ResilientWatcherOptions } from '../../../src/index.js';
import { write } from '../actors/calls.js';
import { KUBELET, publish } from '../actors/volumes.js';
import { Violation, type World } from '../world.js';
import { countWork } from '../work.js';

/** The smaller one is for a change of the code with a loop within a loop: that takes the larger one minutes. */
const SIZES = [20_000, 2_000];

/** How many blocks of code may be executed for each entry: several looks, of some hundred each. */
const MAX_BLOCKS = 3_000;

/** The same when only one of the entries is another one: what goes through all of them does little for each. */
const MAX_BLOCKS_FOR_ONE = 50;

/** Through how many elements native loops may go for each entry: of a loop within a loop, it is all of them. */
const MAX_ELEMENTS = 1_500;

/** To what the link with a name leads: a key of one volume, a key of a volume of its own, or always one directory. */
const TARGETS: Readonly<Record<string, (name: string) => string>> = {
  links: (name) => `../v/${name}`,
  volumes: (name) => `../v/${name}/a`,
  aliases: () => '../v',
};

const SHAPES = [...Object.keys(TARGETS), 'files', 'volume', 'tree', 'group'];

/** The phases in which only one of the entries is another one, with the shapes. */
const ONE_OF_ALL: Readonly<Record<string, readonly string[]>> = {
  'one change': ['volumes', 'aliases', 'files', 'tree'],
  'one more entry': [...Object.keys(TARGETS), 'files', 'tree'],
};

/** How many files are in the directory that all links lead to. */
const ALIASED = 100;

export async function many(world: World): Promise<void> {
  const { machine, library, choices, random } = world;
  const shape = choices.oneOf(SHAPES);
  const size = choices.oneOf(SIZES);
  const { fs } = machine.process();
  for (const path of ['/m', '/m/v', '/m/d']) fs.mkdirSync(path, 0o755);
  const names = Array.from({ length: size }, (_, index) => `k${index}`);
  const swap = (revision: number, directory: string, keys: readonly string[]): void => {
    const at = { fs, world, directory, manner: KUBELET };
    const payload = new Map(keys.map((key) => [key, `${key}@${revision}`]));
    Array.from(publish(at, `..2030_01_01_00_00_00.${revision}`, payload));
  };
  const target = TARGETS[shape];
  const isOfFiles = ['files', 'tree', 'aliases'].includes(shape);
  const directory = isOfFiles && !target ? '/m/d' : '/m/v';
  if (shape === 'volumes') {
    for (const name of names) {
      fs.mkdirSync(`/m/v/${name}`, 0o755);
      swap(1, `/m/v/${name}`, ['a']);
    }
  } else if (isOfFiles) {
    const written = shape === 'aliases' ? names.slice(0, ALIASED) : names;
    for (const name of written) Array.from(write(fs, `${directory}/${name}`, name));
  } else swap(1, '/m/v', names);
  if (target) for (const name of names) fs.symlinkSync(target(name), `/m/d/${name}`);
  const path = shape === 'group' ? names.map((name) => `/m/v/${name}`) : shape === 'volume' ? '/m/v' : '/m/d';
  const watcher = new ResilientWatcher(path, {
    fs: library.fs as unknown as ResilientWatcherOptions['fs'],
    random,
    backend: 'fs',
    ...(shape === 'tree' && { recursive: true }),
    ...(shape === 'aliases' && { recursive: { followLinks: true } }),
  });
  const phases: Readonly<Record<string, () => Promise<unknown>>> = {
    'the start': () => world.through(watcher.start(), 'start()'),
    async 'one change'() {
      if (isOfFiles) Array.from(write(fs, `${directory}/k1`, 'changed'));
      else if (shape === 'volumes') swap(2, '/m/v/k1', ['a']);
      else swap(2, '/m/v', names);
      await world.rest(1_000);
    },
    async 'one more entry'() {
      const more = shape === 'group' ? watcher.add('/m/more') : undefined;
      Array.from(write(fs, isOfFiles && !target ? '/m/d/more' : '/m/more', 'more'));
      if (target) fs.symlinkSync('../more', '/m/d/more');
      if (more) await world.through(more, 'add()');
      else await world.rest(1_000);
    },
    'a resync': () => world.rest(5_000),
    'a check': () => world.through(watcher.check(), 'check()'),
  };
  let violation: Violation | undefined;
  try {
    await countWork(phases, (phase, work) => {
      const blocks = Math.round(work.blocks / size);
      const elements = Math.round(work.elements / size);
      const counts = `${blocks} blocks of code and ${elements} elements`;
      world.note('V8', `counts ${counts} for each entry in ${phase}`);
      const isOfOne = ONE_OF_ALL[phase]?.includes(shape);
      if (blocks > (isOfOne ? MAX_BLOCKS_FOR_ONE : MAX_BLOCKS) || elements > MAX_ELEMENTS)
        violation ??= new Violation(9, `${shape}: ${counts} for each of ${size} entries in ${phase}`);
    });
    if (violation) throw violation;
  } finally {
    await world.through(watcher.close(), 'close()');
    await world.rest(1_000);
  }
}
