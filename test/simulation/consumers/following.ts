/** One of several watchers of a process: what its target shows is noted, and compared with what it is told. */
import { historyOf, type History } from '../history.js';
import { checkAllIsTold, checkReports } from '../invariants.js';
import type { Scene } from '../kinds.js';
import type { World } from '../world.js';
import { Watching } from './watching.js';

const PATIENCE = { settleMs: 50, missingGraceMs: 500 };

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

/** 1 to 5, after the last change. @param isDeaf whether inotify was not available at times. */
export function checkFollowed(
  world: World,
  { scene, history, watching }: Followed,
  isDeaf: boolean,
  patience = PATIENCE,
): void {
  watching.check();
  if (!world.isLossy && scene.isSilent !== true) watching.checkCalm(false, isDeaf);
  if (!world.isLossy || scene.isTree !== true)
    checkReports(history, watching.reports, watching.since, {
      ...patience,
      areClocksFar: world.areClocksFar,
    });
  checkAllIsTold(history, watching.reports.at(-1));
}
