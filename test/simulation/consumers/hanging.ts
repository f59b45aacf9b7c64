/**
 * A file or a volume on a server that stops answering. It is unmounted lazily, and another server is mounted in its place, or it
 * answers again. No call that waits for the server may hold up the process, `close()`, or what is mounted instead.
 */
import { ResilientWatcher, type Change, type ResilientWatcherOptions } from '../../../src/index.js';
import { write as writeFile } from '../actors/calls.js';
import { KUBELET, publish } from '../actors/volumes.js';
import { leftovers } from '../time.js';
import { Violation, type World } from '../world.js';

/** The mount table has blanks, backslashes and line ends in octal, perhaps one after another. */
const POINTS = ['/n', '/n', '/n  x', '/n\\040\\', '/ n\t\n', '/n\\134 \u00fc#'];

/** Polling, reading the mount table, and settling take less together. */
const PATIENCE_MS = 10_000;

function write(world: World, point: string, isVolume: boolean, text: string): void {
  const { fs } = world.machine.process();
  const at = { fs, world, directory: point, manner: KUBELET };
  const revision = `..2030_01_01_00_00_00.${Math.floor(world.random() * 1e9)}`;
  Array.from(isVolume ? publish(at, revision, new Map([['f', text]])) : writeFile(fs, `${point}/f`, text));
}

export async function hang(world: World): Promise<void> {
  const { choices, machine } = world;
  const point = choices.oneOf(POINTS);
  machine.process().fs.mkdirSync(point, 0o755);
  let mount = machine.mount(point, { type: 'nfs4' });
  const isVolume = choices.choose(2) === 1;
  write(world, point, isVolume, 'the first text');
  const told: string[] = [];
  const starts: Promise<void>[] = [];
  const watch = (): ResilientWatcher => {
    const fs = world.library.fs as unknown as ResilientWatcherOptions['fs'];
    const watcher = new ResilientWatcher(isVolume ? point : `${point}/f`, {
      fs,
      random: world.random,
      backend: 'fs',
    });
    watcher.on('change', ({ current }: Change) => told.push(String(current.files.get('f')?.content)));
    const started = watcher.start();
    // `close()` rejects it, after a failure also before it is awaited.
    started.catch(() => undefined);
    starts.push(started);
    return watcher;
  };
  const watcher = watch();
  let other: ResilientWatcher | undefined;
  try {
    await world.rest(choices.oneOf([3_000, 0, 1, 40, 1_001]));
    mount.isHung = true;
    world.note('server', 'hangs');
    await world.rest(choices.oneOf([3_000, 0, 400]));
    if (choices.choose(2) === 1) other = watch();
    await world.rest(choices.oneOf([0, 2_000]));
    if (choices.choose(3) > 0) {
      machine.unmount(mount, { isLazy: true });
      world.note('administrator', 'unmounts');
      await world.rest(choices.oneOf([0, 500, 5_000]));
      mount = machine.mount(point, { type: choices.oneOf(['nfs4', 'ext4']) });
      world.note('administrator', 'mounts');
    } else mount.isHung = false;
    write(world, point, isVolume, 'the last text');
    await world.through(Promise.all(starts), 'start()');
    await world.rest(PATIENCE_MS);
    if (told.at(-1) !== 'the last text')
      throw new Violation(5, `the last that is told is "${String(told.at(-1))}"`);
    if (mount.storage.type === 'nfs4' && choices.choose(2) === 1) {
      mount.isHung = true;
      await world.rest(2_000);
    }
  } finally {
    await world.through(Promise.all([watcher.close(), other?.close()]), 'close()');
    machine.unmount(mount, { isLazy: true });
    await world.rest(3_000);
  }
  const { frozenIn } = world.library;
  if (frozenIn !== undefined) throw new Violation(5, `the process waits for ever in ${frozenIn}`);
  if (leftovers() > 0) throw new Violation(7, `after close(), ${leftovers()} timers are left`);
}
