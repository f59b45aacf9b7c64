/** Two file systems in one target, each with its own clock: one of them may be hours behind or ahead, and drift. */
import { directories, files, GROUP_SETTLE_MS, options, SETTLE_MS, type Kind } from './kinds.js';
import { areFarApart } from './skew.js';
import { elapsed, wallClock } from './time.js';
import * as views from './views.js';

const ROOT = '/m';
const OWN = `${ROOT}/d/f`;
const OTHER = `${ROOT}/w/f`;
const LINKS = '/l';
const LINK = `${LINKS}/f`;

const HOUR_MS = 3_600_000;
const SKEWS_MS = [0, -8 * HOUR_MS, 8 * HOUR_MS, -23 * HOUR_MS, 23 * HOUR_MS, -50, 50];

/** How much faster it goes. */
const DRIFTS = [0, 0.01, -0.01, 0.3, -0.3];

export const clocks: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, ROOT, `${ROOT}/d`, `${ROOT}/w`, LINKS);
  const [skewMs, drift] = [choices.oneOf(SKEWS_MS), choices.oneOf(DRIFTS)];
  const began = wallClock() + skewMs;
  const now = (): number => began + elapsed() * (1 + drift);
  machine.mount(`${ROOT}/w`, { type: 'ext4', now });
  // Ours may be set, too.
  world.eachTurn.push(() => (world.areClocksFar ||= areFarApart(now() - wallClock())));
  machine.process().fs.symlinkSync(OTHER, LINK);
  const edits = files(world, [OWN, OTHER]);
  // A link that is retargeted waits for that of the other member.
  const areLinked = edits.some(({ edit }) => edit === 'relink' || edit === 'linkAndCopy');
  const shape = choices.oneOf(['tree', 'group', 'directory', 'link'] as const);
  const own = options(world);
  if (shape === 'tree')
    return {
      path: ROOT,
      options: { ...own, recursive: true },
      isTree: true,
      unitOf: (key) => `${ROOT}/${key}`,
      see: (fs) => views.directory(fs, ROOT, true),
    };
  if (shape === 'group')
    return {
      path: [OWN, OTHER],
      options: own,
      heldMs: areLinked ? GROUP_SETTLE_MS : SETTLE_MS,
      unitOf: (key) => key,
      see: (fs) => views.group(fs, [OWN, OTHER]),
    };
  return {
    path: shape === 'link' ? LINK : LINKS,
    options: own,
    isTree: shape === 'directory',
    unitOf: () => OTHER,
    see: (fs) => views.file(fs, LINK),
  };
};
