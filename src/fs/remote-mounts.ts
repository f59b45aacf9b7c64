/**
 * A call on a file system whose server is dead may never end, and occupies one of the four threads in which the
 * process makes its asynchronous file system calls: after a few of them nobody can read a file or resolve a name.
 * So on each remote mount at most one call is outstanding in the whole process, and the next one waits for it.
 */
import type { FileSystem } from '../core/file-system.js';
import { onNextTurn } from '../core/event-loop.js';
import { SerialQueue } from '../core/serial-queue.js';
import { runAsync } from './effects.js';
import { kindOfType } from './file-system-kind.js';
import { mountOf, readMounts, type Mount } from './mount-table.js';
import { READ_CALLS } from './targets/read-limits.js';

const CALLS = [...READ_CALLS, 'statfs'] as const;

type AnyCall = (...args: readonly unknown[]) => Promise<unknown>;

/** The calls on remote mounts, by mount point. */
const outstanding = new SerialQueue();

/** The mount tables read in this turn of the event loop: many watchers check together. */
const tables = new Map<FileSystem, Promise<readonly Mount[]>>();

/**
 * The file system with at most one outstanding call on each remote mount. Not a promise of it: a file system may be
 * a proxy that has every method, also `then`.
 */
export async function oneCallForEachRemoteMount(fs: FileSystem): Promise<{ readonly fs: FileSystem }> {
  const mounts = await mountsOf(fs);
  if (!mounts.some(isRemote)) return { fs };
  const mountsOfDescriptors = new Map<unknown, string>();
  const remoteMountOf = (place: unknown): string | undefined => {
    if (typeof place !== 'string') return mountsOfDescriptors.get(place);
    const mount = mountOf(place, mounts);
    return mount && isRemote(mount) ? mount.point : undefined;
  };
  const guard = (name: (typeof CALLS)[number]): AnyCall => {
    const make: AnyCall = (...args) => (fs[name] as AnyCall)(...args);
    return async (...args) => {
      const mount = remoteMountOf(args[0]);
      if (mount === undefined) return make(...args);
      const answer = await outstanding.run(mount, () => make(...args));
      if (name === 'open' || name === 'opendir') mountsOfDescriptors.set(answer, mount);
      if (name === 'close' || name === 'closedir') mountsOfDescriptors.delete(args[0]);
      return answer;
    };
  };
  const guarded = Object.fromEntries(CALLS.map((name) => [name, guard(name)]));
  return { fs: { ...guarded, sync: fs.sync } as unknown as FileSystem };
}

function mountsOf(fs: FileSystem): Promise<readonly Mount[]> {
  let table = tables.get(fs);
  if (!table) {
    table = runAsync(readMounts(), fs);
    tables.set(fs, table);
    onNextTurn(() => tables.delete(fs));
  }
  return table;
}

/** A lookup in an autofs waits for the file system that it mounts. */
function isRemote({ type }: Mount): boolean {
  return type === 'autofs' || kindOfType(type)?.place === 'remote';
}
