/** One of several watchers of a process: what its target shows is noted, and compared with what it is told. */
import { historyOf, type History } from '../history.js';
import { checkAllIsTold, checkReports } from '../invariants.js';
import { GRACE_MS, SETTLE_MS, type Scene } from '../kinds.js';
import type { World } from '../world.js';
import { Watching } from './watching.js';

/** A look that begins when the grace ends, ms. */
const LOOK_MS = 20;

const PATIENCE = { settleMs: SETTLE_MS, missingGraceMs: GRACE_MS };

export interface Followed {
  readonly scene: Scene;
  readonly history: History;
  readonly watching: Watching;
}

/** Watches a scene. If calls fail, a resync finds what was missed. */
export function follow(world: World, scene: Scene): Followed {
  const history = historyOf(world, scene.see, scene.unitOf);
  const needsResync = world.isLossy || scene.isSilent === true;
  const options = needsResync ? { ...scene.options, resyncIntervalMs: 5_000 } : scene.options;
  return { scene, history, watching: new Watching(world, { ...scene, options }) };
}

/** 5: without resyncs, what `parcel` has swallowed or held back is told after the next `check()`. */
export async function checkIsTold(world: World, history: History, watching: Watching): Promise<void> {
  const { path, options } = watching.watched;
  const isTree = options.recursive !== undefined && options.resyncIntervalMs === 0;
  const last = watching.reports.at(-1);
  const parcel = isTree ? world.parcel : undefined;
  const swallowed = parcel?.swallowedAt(String(path)) ?? new Set();
  const unheard = new Set([...swallowed].filter((file) => last?.units.has(file)));
  const held = parcel?.heldAt(String(path)) ?? new Set();
  checkAllIsTold(history, last, unheard, held);
  if (unheard.size + held.size === 0) return;
  await world.through(watching.watcher.check(), 'check()');
  await world.rest(GRACE_MS + LOOK_MS);
  checkAllIsTold(history, watching.reports.at(-1));
}

/** 1 to 5, after the last change. @param isDeaf whether inotify was not available at times. */
export async function checkFollowed(
  world: World,
  { scene, history, watching }: Followed,
  isDeaf: boolean,
  patience = PATIENCE,
): Promise<void> {
  watching.check();
  if (!world.isLossy && scene.isSilent !== true) watching.checkCalm(false, isDeaf);
  if (!world.isLossy || scene.isTree !== true)
    checkReports(history, watching.reports, watching.since, {
      ...patience,
      areClocksFar: world.areClocksFar,
    });
  await checkIsTold(world, history, watching);
}
