/** A program that closes its watcher at any time, also while a difference is pending: no timer keeps it alive. */
import { KINDS } from '../kinds.js';
import { pendingTimers } from '../time.js';
import { Violation, type World } from '../world.js';
import { Watching } from './watching.js';

export async function leave(world: World): Promise<void> {
  const { choices } = world;
  const scene = KINDS[choices.oneOf(['file', 'volume', 'groups', 'tree'])]?.(world);
  if (!scene) throw new Error('There is no such kind');
  const watching = new Watching(world, scene);
  let left = 0;
  const started = watching.start().catch(() => undefined);
  const closed = world.sleep(choices.oneOf([20, 1, 5, 60, 110, 400, 800])).then(async () => {
    await watching.close();
    left = pendingTimers();
  });
  await world.run(1_000);
  await world.through(closed, 'close()');
  await world.through(started, 'start() of a watcher that is closed');
  if (left > 0) throw new Violation(7, `after close(), ${left} timers are left`);
}
