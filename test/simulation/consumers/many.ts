/**
 * Thousands of entries in one target: what the library does at the start, after one change and at a resync is
 * proportional to them. A loop within a loop does not hide behind a limit on system calls.
 */
import { ResilientWatcher, type ResilientWatcherOptions } from '../../../src/index.js';
import { write } from '../actors/calls.js';
import { KUBELET, publish } from '../actors/volumes.js';
import { Violation, type World } from '../world.js';
import { countWork } from '../work.js';

const SIZE = 2_000;

/** How many blocks of code may be executed for each entry: several looks, of some hundred each. */
const MAX_BLOCKS = 2_000;

/** Through how many elements the methods of arrays may go for each entry: of a loop within a loop, it is half of all. */
const MAX_ELEMENTS = 400;

const SHAPES = ['links', 'files', 'volume', 'tree', 'group'] as const;

export async function many(world: World): Promise<void> {
  const { machine, library, choices, random } = world;
  const shape = choices.oneOf(SHAPES);
  const { fs } = machine.process();
  for (const path of ['/m', '/m/v', '/m/d']) fs.mkdirSync(path, 0o755);
  const names = Array.from({ length: SIZE }, (_, index) => `k${index}`);
  const swap = (revision: number): void => {
    const at = { fs, world, directory: '/m/v', manner: KUBELET };
    const payload = new Map(names.map((name) => [name, `${name}@${revision}`]));
    Array.from(publish(at, `..2030_01_01_00_00_00.${revision}`, payload));
  };
  const isOfFiles = shape === 'files' || shape === 'tree';
  if (isOfFiles) for (const name of names) Array.from(write(fs, `/m/d/${name}`, name));
  else swap(1);
  if (shape === 'links') for (const name of names) fs.symlinkSync(`../v/${name}`, `/m/d/${name}`);
  const path = shape === 'group' ? names.map((name) => `/m/v/${name}`) : shape === 'volume' ? '/m/v' : '/m/d';
  const watcher = new ResilientWatcher(path, {
    fs: library.fs as unknown as ResilientWatcherOptions['fs'],
    random,
    backend: 'fs',
    ...(shape === 'tree' && { recursive: true }),
  });
  const phases: Readonly<Record<string, () => Promise<unknown>>> = {
    'the start': () => world.through(watcher.start(), 'start()'),
    async 'one change'() {
      if (isOfFiles) Array.from(write(fs, '/m/d/k1', 'changed'));
      else swap(2);
      await world.rest(1_000);
    },
    async 'one more entry'() {
      const more = shape === 'group' ? watcher.add('/m/more') : undefined;
      Array.from(write(fs, isOfFiles ? '/m/d/more' : '/m/more', 'more'));
      if (shape === 'links') fs.symlinkSync('../more', '/m/d/more');
      if (more) await world.through(more, 'add()');
      else await world.rest(1_000);
    },
    'a resync': () => world.rest(5_000),
    'a check': () => world.through(watcher.check(), 'check()'),
  };
  let violation: Violation | undefined;
  try {
    await countWork(phases, (phase, work) => {
      const blocks = Math.round(work.blocks / SIZE);
      const elements = Math.round(work.elements / SIZE);
      const counts = `${blocks} blocks of code and ${elements} elements`;
      world.note('V8', `counts ${counts} for each entry in ${phase}`);
      if (blocks > MAX_BLOCKS || elements > MAX_ELEMENTS)
        violation ??= new Violation(9, `${shape}: ${counts} for each of ${SIZE} entries in ${phase}`);
    });
    if (violation) throw violation;
  } finally {
    await world.through(watcher.close(), 'close()');
    await world.rest(1_000);
  }
}
