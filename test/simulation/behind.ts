/** A target behind a link of `/proc`: in a container, which may start again, or in the root directory of the program itself. */
import { makeTree } from './actors/directories.js';
import { KUBELET, publisher } from './actors/volumes.js';
import { directories, KEYS, pausesOf, PAUSES_MS, payloads, type Kind } from './kinds.js';
import type { Mount } from './machine/mounts.js';
import { anyTarget, PLAIN } from './scenes.js';
import type { World } from './world.js';

/** The root directory of a container. */
export const CONTAINER = '/proc/7/root';
const OWN = '/proc/1/root';

/** The links of two processes. Returns the mount that a container has as its root directory. */
export function processes({ machine }: World): Mount | undefined {
  const { fs } = machine.process();
  for (const directory of ['/proc', '/proc/1', '/proc/7']) fs.mkdirSync(directory, 0o555);
  fs.symlinkSync('1', '/proc/self');
  machine.putInProc('/proc/self');
  for (const link of [CONTAINER, OWN]) fs.symlinkSync('/', link);
  machine.linkRoot(OWN);
  return machine.linkRoot(CONTAINER, 'overlay');
}

export const behind: Kind = (world) => {
  const { choices, machine } = world;
  processes(world);
  const root = choices.oneOf([CONTAINER, OWN, '/proc/self/root']);
  const directory = `${root}/d`;
  directories(world, directory);
  // A look has so many calls that few would end before others act.
  world.between = choices.oneOf([0.02, world.between, 0.005]);
  const isVolume = choices.choose(2) === 1;
  const scene = anyTarget(world, directory, isVolume ? KEYS : PLAIN, isVolume ? directory : undefined);
  const revisions = payloads(world, isVolume ? KEYS : PLAIN);
  const pauses = pausesOf(world, revisions);
  const restartsAfter = root === CONTAINER && choices.choose(2) === 1 ? choices.oneOf(PAUSES_MS) : undefined;
  world.actor('publisher', function* (fs) {
    /** kubelet never gives a name again. */
    function* fill(first: number, named: number) {
      const at = { fs, world, directory, manner: KUBELET };
      if (isVolume) yield* publisher(at, revisions.slice(first), pauses, named);
      else for (const files of revisions.slice(first)) yield* makeTree(fs, world, directory, files);
    }
    yield* fill(0, 0);
    if (restartsAfter === undefined) return;
    yield restartsAfter;
    machine.linkRoot(CONTAINER, 'overlay');
    world.acts('container', 'starts again');
    yield;
    fs.mkdirSync(directory, 0o755);
    yield* fill(revisions.length - 1, revisions.length);
  });
  // No event tells that a link of `/proc` leads elsewhere.
  return { ...scene, isSilent: restartsAfter !== undefined };
};
