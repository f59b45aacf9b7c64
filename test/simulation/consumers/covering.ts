/**
 * Mounts over mounts, over a directory above them, and below them, and what is behind a link of `/proc`. Any of them may hang.
 * What a path leads to is told, and no call on what it no longer leads to holds up the process, `close()`, or other watchers.
 */
import { ResilientWatcher, type Change, type ResilientWatcherOptions } from '../../../src/index.js';
import { makeDirectories, write } from '../actors/calls.js';
import { Stuck } from '../machine/machine.js';
import type { Mount } from '../machine/mounts.js';
import { leftovers, monotonic } from '../time.js';
import { Violation, type World } from '../world.js';

const ABOVE = '/n';
const POINT = `${ABOVE}/p`;
const DIRECTORY = `${POINT}/d`;
const FILE = `${DIRECTORY}/f`;
const LOCAL = '/l';
const LINK = '/proc/7/root';

/** Within this time, a change of the mount table may not be known, and a call on what hangs is made at once, ms. */
const TABLE_AGE_MS = 6_001;

/** Polls, resyncs, reading the mount table, and settling take less together, ms. */
const PATIENCE_MS = 15_000;

function isOn(mount: Mount | undefined, below: Mount): boolean {
  return mount !== undefined && (mount === below || isOn(mount.on?.mount, below));
}

/** Writes the file that the path leads to now, unless a mount on the way hangs. Returns whether it did. */
function publish(world: World, path: string, text: string): boolean {
  const { fs } = world.machine.process();
  try {
    Array.from(makeDirectories(fs, path.slice(0, path.lastIndexOf('/'))));
    Array.from(write(fs, path, text));
    return true;
  } catch (error) {
    if (error instanceof Stuck) return false;
    throw error;
  }
}

/** A watcher, and the last text that it has told of a file. */
function follow(world: World, path: string | readonly string[], file: string, isTree: boolean) {
  const fs = world.library.fs as unknown as ResilientWatcherOptions['fs'];
  const options = { fs, random: world.random, backend: 'fs', recursive: isTree } as const;
  const watcher = new ResilientWatcher(path, options);
  const followed = { watcher, text: undefined as string | undefined };
  const isKey = (key: string): boolean => file.endsWith(`/${key}`) || key === file;
  watcher.on('change', ({ current }: Change) => {
    const found = [...current.files].find(([key]) => isKey(key));
    followed.text = found && String(found[1].content);
  });
  return followed;
}

export async function cover(world: World): Promise<void> {
  const { choices, machine } = world;
  const { fs } = machine.process();
  for (const path of ['/proc', '/proc/7', LOCAL]) fs.mkdirSync(path, 0o755);
  fs.symlinkSync('/', LINK);
  machine.linkRoot(LINK);
  const root = choices.oneOf(['', LINK]);
  const file = `${root}${FILE}`;
  publish(world, FILE, 'below all mounts');
  publish(world, `${LOCAL}/f`, 'local');
  const shape = choices.oneOf(['file', 'directory', 'tree', 'group'] as const);
  const path = { file, directory: `${root}${DIRECTORY}`, tree: `${root}${ABOVE}`, group: [file] }[shape];
  const target = follow(world, path, file, shape === 'tree');
  const other = follow(world, LOCAL, `${LOCAL}/f`, false);
  const all: Mount[] = [];
  let mounted: readonly Mount[] = [];
  const since = new Map<Mount, number>();
  const unmount = async (mount: Mount): Promise<void> => {
    const hung = mounted.filter(({ isHung }) => isHung);
    for (const each of hung) each.isHung = false;
    machine.unmount(mount, { isLazy: true });
    // With what is mounted on it.
    mounted = mounted.filter((each) => !isOn(each, mount));
    world.note('administrator', 'unmounts');
    await world.rest(TABLE_AGE_MS);
    for (const each of hung) each.isHung = true;
  };
  try {
    const starts = [target.watcher.start(), other.watcher.start()];
    for (let count = 1 + choices.choose(5); count > 0; count -= 1) {
      await world.rest(choices.oneOf([0, 40, 1_001, 3_000, 6_000]));
      const one = mounted.length > 0 ? choices.oneOf(mounted) : undefined;
      const what = choices.oneOf(['mount', 'mount', 'hang', 'answer', 'unmount'] as const);
      if (what === 'unmount' && one) await unmount(one);
      else if (one && what !== 'mount') {
        if (what === 'hang')
          await world.rest(Math.max(0, (since.get(one) ?? 0) + TABLE_AGE_MS - monotonic()));
        // A disk does not hang.
        one.isHung = what === 'hang' && one.storage.type === 'nfs4';
        world.note('server', `${what}s`);
      } else {
        const point = choices.oneOf([POINT, ABOVE, DIRECTORY]);
        try {
          Array.from(makeDirectories(fs, point));
          const mount = machine.mount(point, { type: choices.oneOf(['nfs4', 'ext4']) });
          all.push(mount);
          mounted = [...mounted, mount];
          since.set(mount, monotonic());
          world.note('administrator', `mounts over ${point}`);
        } catch (error) {
          if (!(error instanceof Stuck)) throw error;
        }
      }
      publish(world, FILE, `text ${count}`);
      const isTold = publish(world, `${LOCAL}/f`, `local ${count}`);
      if (isTold && choices.choose(3) === 0) {
        await world.rest(PATIENCE_MS);
        if (other.text !== `local ${count}`)
          throw new Violation(12, `beside mounts that hang, "${String(other.text)}" is told`);
      }
    }
    for (const mount of [...mounted].reverse()) {
      if (publish(world, FILE, 'the last text')) break;
      if (choices.choose(2) === 1) mount.isHung = false;
      else if (mounted.includes(mount)) await unmount(mount);
    }
    // What is mounted behind a link of `/proc` is not known, so what hangs there is waited for even if it is covered.
    if (root === LINK) for (const mount of all) mount.isHung = false;
    publish(world, FILE, 'the last text');
    await world.through(Promise.all(starts), 'start()');
    await world.rest(PATIENCE_MS);
    if (target.text !== 'the last text')
      throw new Violation(5, `the last that is told is "${String(target.text)}"`);
  } finally {
    await world.through(Promise.all([target.watcher.close(), other.watcher.close()]), 'close()');
    for (const mount of all) mount.isHung = false;
    await world.rest(3_000);
  }
  const { frozenIn } = world.library;
  if (frozenIn !== undefined) throw new Violation(5, `the process waits for ever in ${frozenIn}`);
  if (leftovers() > 0) throw new Violation(7, `after close(), ${leftovers()} timers are left`);
}
