import { nodeFileSystem } from '../core/ports/builtins.js';
import { systemClock } from '../core/ports/clock.js';
import { insidePath, told } from '../core/ports/platform-path.js';
import { checkPath } from '../core/options/options.js';
import { run, type Steps } from '../core/scheduling/steps.js';
import { within } from './absolute-path.js';
import { Disk, noAnswers } from './disk.js';
import type { Mount } from './mount-table.js';
import { Mounts } from './mounts.js';
import { linksIn, resolve, type Resolution } from './resolve.js';
import { mountPointsIn, staleMountAt, staleMountsAt, type StaleMount } from './stale-mounts.js';
import { DATA_LINK } from './volume-layout.js';

/** What lies on the way of a path. */
export interface Examination {
  /** The examined path, absolute. */
  readonly path: string;
  /** Where it leads; for a volume, to its revision. */
  readonly end: Resolution;
  /** The links of the chain, in order. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** The mounts on the way, each once. */
  readonly mounts: readonly Mount[];
  /** The mounts that never show an update: that at its end, or those below it. */
  readonly stale: readonly StaleMount[];
}

/**
 * Examines a path that may never show an update.
 * @throws {TypeError} (rejects) for an invalid path.
 */
export async function examine(owner: string, given: string | URL): Promise<Examination> {
  const path = insidePath(checkPath(owner, 'path', given));
  const mounts = Mounts.of(nodeFileSystem, 0);
  await mounts.ask(path);
  const disk = new Disk(nodeFileSystem, mounts, systemClock, noAnswers());
  const end = await run(throughVolume(path, disk));
  const links = Array.from(linksIn(end.route.way.links), ({ path, target }) => ({
    path: told(path),
    target: told(target),
  }));
  const toldEnd = 'path' in end ? { ...end, path: told(end.path) } : end;
  return {
    path: told(path),
    end: toldEnd,
    links,
    mounts: mountsOf(end, mounts),
    stale: await run(staleAt(end, mounts, disk)),
  };
}

function* throughVolume(path: string, disk: Disk): Steps<Resolution> {
  const found = yield* resolve(path, disk);
  if (found.kind !== 'found' || !found.stat.isDirectory()) return found;
  const published = yield* resolve(within(path, DATA_LINK), disk);
  return published.route.way.links === found.route.way.links ? found : published;
}

function mountsOf(end: Resolution, mounts: Mounts): Mount[] {
  const places = ['/', ...end.route.directories.map(({ path }) => path)];
  if (end.kind === 'found') places.push(end.path);
  return [...new Map(places.map((place) => [mounts.at(place).point, mounts.at(place)])).values()];
}

function* staleAt(end: Resolution, mounts: Mounts, disk: Disk): Steps<readonly StaleMount[]> {
  if (end.kind !== 'found') return [];
  const { path, stat, route } = end;
  const own = staleMountAt(mounts, path, stat.isFile() ? 'file' : 'directory');
  if (own) return [own];
  if (!stat.isDirectory()) return [];
  const { volume = path, revisionPath } = route.way;
  const points = mountPointsIn(mounts, revisionPath === path ? volume : path);
  return yield* staleMountsAt(mounts, points, true, disk);
}
