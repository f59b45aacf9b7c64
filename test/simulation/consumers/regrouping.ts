/** Parts of a tree are removed and added again while others change them: `remove()` and `add()` resolve when that is told. */
import { historyOf } from '../history.js';
import { checkAllIsTold } from '../invariants.js';
import { KINDS } from '../kinds.js';
import { Violation, type World } from '../world.js';
import { Watching } from './watching.js';

/** A part of each tree. */
const PARTS = { tree: 'd', around: 'v', on: 'certs' } as const;

const PAUSES_MS = [0, 5, 40, 400];

/** Two resyncs, and what settles after them, ms. */
const REST_MS = 12_000;

export async function regroup(world: World): Promise<void> {
  const { choices } = world;
  const kind = choices.oneOf(['tree', 'around', 'on'] as const);
  const part = PARTS[kind];
  const scene = KINDS[kind]?.(world);
  if (!scene) throw new Error('There is no such kind');
  const history = historyOf(world, scene.see, scene.unitOf);
  const watching = new Watching(world, { ...scene, options: { ...scene.options, resyncIntervalMs: 5_000 } });
  const { watcher } = watching;
  const isTold = (): boolean =>
    [...(watcher.current?.files.keys() ?? [])].some((key) => key === part || key.startsWith(`${part}/`));
  let isRemoved = false;
  const told: string[] = [];
  watcher.on('change', () => {
    if (isRemoved && isTold()) told.push('a change');
  });
  const calls = async (): Promise<void> => {
    await watching.start();
    for (let round = 0; round < 2; round += 1) {
      await world.sleep(choices.oneOf(PAUSES_MS));
      await watcher.remove(part);
      isRemoved = true;
      if (isTold() && !world.isLossy) told.push('remove()');
      await world.sleep(choices.oneOf(PAUSES_MS));
      isRemoved = false;
      await watcher.add(part);
    }
  };
  try {
    const done = calls();
    await world.run(REST_MS);
    await world.through(done, 'add() or remove()');
    watching.check();
    if (told.length > 0) throw new Violation(5, `"${part}" is still there after ${told.join(', ')}`);
    checkAllIsTold(history, watching.reports.at(-1));
  } finally {
    await world.through(watching.close(), 'close()');
    await world.rest(3_000);
  }
}
