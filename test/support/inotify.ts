import { readFileSync, readdirSync } from 'node:fs';

/** How many inotify watches this process holds, as the kernel counts them. */
export function inotifyWatches(): number {
  let count = 0;
  for (const fd of readdirSync('/proc/self/fdinfo')) {
    try {
      const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1');
      count += info.split('\n').filter((line) => line.startsWith('inotify wd:')).length;
    } catch {
      // closed meanwhile, as the descriptor of this very listing
    }
  }
  return count;
}
