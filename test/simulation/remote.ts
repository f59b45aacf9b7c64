/**
 * A target on a file server, which other computers change: no event tells that. The mount table may not be readable, as with
 * `node --permission`, and the path may not exist yet: then `statfs` of a directory above it tells what is there.
 */
import { makeTree } from './actors/directories.js';
import { directories, options, pausesOf, payloads, type Kind } from './kinds.js';
import { anyTarget, PLAIN } from './scenes.js';
import type { Steps } from './world.js';

const POINT = '/n';
const POLL_MS = 1_000;

export const remote: Kind = (world) => {
  const { choices, machine, library } = world;
  directories(world, POINT);
  machine.mount(POINT, { type: choices.oneOf(['nfs4', 'fuse.sshfs']) });
  const directory = choices.oneOf([POINT, `${POINT}/a/b`]);
  library.hasProc = choices.choose(2) === 0;
  const scene = anyTarget(world, directory, PLAIN);
  const published = payloads(world, PLAIN);
  const pauses = pausesOf(world, published);
  world.actor(
    'another computer',
    function* (fs): Steps {
      for (const [index, payload] of published.entries()) {
        yield pauses[index] ?? 0;
        yield* makeTree(fs, world, directory, payload);
      }
    },
    { isRemote: true },
  );
  // Without a resync, only polls find anything.
  const own = { ...options(world), ...scene.options, resyncIntervalMs: 0, pollIntervalMs: POLL_MS };
  return { ...scene, options: own, isDeafened: true };
};
