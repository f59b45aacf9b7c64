/** Counts how much of the inotify limits of this user is used (`inotify(7)`, `proc_pid_fdinfo(5)`). */
import { watch } from 'node:fs';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';

import { errnoOf } from 'resilient-watcher/internal';

/** The use of one inotify limit. */
export interface Usage {
  /** How many are in use, as far as this process can see. */
  readonly used: number;
  /** The limit; null if the kernel does not report it. */
  readonly limit: number | null;
}

/** The two limits, both per user. Processes in other containers count as well, but are not visible from here. */
export interface InotifyUsage {
  /** `fs.inotify.max_user_instances`. */
  readonly instances: Usage;
  /** `fs.inotify.max_user_watches`. */
  readonly watches: Usage;
  /** The limit that prevented this process from watching a directory just now; null if none did. */
  readonly exhausted: 'instances' | 'watches' | null;
}

/** Counts over the processes of this user that may be inspected; null if there is no `/proc`. */
export async function inotifyUsage(): Promise<InotifyUsage | null> {
  const entries = await readdir('/proc').catch(() => undefined);
  if (!entries) return null;
  const counts = await Promise.all(entries.filter((entry) => /^\d+$/.test(entry)).map(countOf));
  const [instances, watches] = await Promise.all([limitOf('instances'), limitOf('watches')]);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  return {
    instances: { used: sum(counts.map((count) => count.instances)), limit: instances },
    watches: { used: sum(counts.map((count) => count.watches)), limit: watches },
    exhausted: exhaustedLimit(),
  };
}

/** Tries to watch a directory: `inotify_init(2)` fails with EMFILE, `inotify_add_watch(2)` with ENOSPC. */
function exhaustedLimit(): InotifyUsage['exhausted'] {
  try {
    watch('/proc/self', { persistent: false })
      .on('error', () => undefined)
      .close();
    return null;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EMFILE') return 'instances';
    return errno === 'ENOSPC' ? 'watches' : null;
  }
}

/** Each user namespace has its own limit in addition to the kernel's; the lower one applies. */
async function limitOf(what: 'instances' | 'watches'): Promise<number | null> {
  const files = [`/proc/sys/fs/inotify/max_user_${what}`, `/proc/sys/user/max_inotify_${what}`];
  const limits = await Promise.all(
    files.map((file) =>
      readFile(file, 'utf8').then(
        (text) => [Number(text)],
        () => [],
      ),
    ),
  );
  const known = limits.flat();
  return known.length > 0 ? Math.min(...known) : null;
}

async function countOf(pid: string): Promise<{ readonly instances: number; readonly watches: number }> {
  const count = { instances: 0, watches: 0 };
  try {
    if ((await stat(`/proc/${pid}`)).uid !== process.getuid?.()) return count;
    for (const fd of await readdir(`/proc/${pid}/fd`)) {
      if ((await readlink(`/proc/${pid}/fd/${fd}`)) !== 'anon_inode:inotify') continue;
      count.instances += 1;
      const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
      count.watches += info.split('\n').filter((line) => line.startsWith('inotify ')).length;
    }
  } catch {
    // The process has ended, or may not be inspected.
  }
  return count;
}
