/** Trees that the backend `parcel` watches; its native module may die, and inotify instances and watches may run out. */
import { limits, together } from './consumers/together.js';
import { denied } from './denied.js';
import { KINDS, PAUSES_MS, type Kind } from './kinds.js';
import { loadParcelFor } from './parcel-edges.js';
import { SCENES } from './scenes.js';
import type { World } from './world.js';

const TREES: Readonly<Record<string, Kind>> = { ...KINDS, ...SCENES, denied };

/** How long the module waits for more events, ms. */
const BATCH_MS = 50;

/** Returns whether the module dies, or cannot watch. */
function loads(world: World): boolean {
  const { choices } = world;
  world.backend = 'parcel';
  const native = loadParcelFor(world);
  world.parcel = native;
  const trouble = choices.oneOf(['none', 'none', 'limits', 'deaths'] as const);
  if (trouble === 'limits') return limits(world);
  if (trouble === 'none') return false;
  const pauses = Array.from({ length: 1 + choices.choose(4) }, () => choices.oneOf(PAUSES_MS));
  void (async () => {
    for (const pause of pauses) {
      await world.sleep(pause);
      world.note('a signal', 'interrupts the thread');
      native.interrupt();
    }
  })();
  return true;
}

export const parcel: Kind = (world) => {
  const isTroubled = loads(world);
  const kind = world.choices.oneOf([
    'on',
    'around',
    'tree',
    'renamed',
    'recreated',
    'mounted',
    'git-sync',
    'denied',
  ]);
  const scene = TREES[kind]?.(world);
  if (!scene) throw new Error(kind);
  return { ...scene, isSilent: scene.isSilent === true || isTroubled, lateMs: BATCH_MS };
};

/** Several watchers of one process. */
export async function parcels(world: World): Promise<void> {
  await together(world, loads(world));
}
