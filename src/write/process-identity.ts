/**
 * Which process, for ever: a pid alone is reused, and in containers every first process is pid 1. A process is
 * named by the boot of its kernel, its pid and time namespaces, its pid there, and when it started. Whoever is
 * in the same namespaces can tell whether it is gone; nobody else can, and then the answer is `undefined`.
 */
import { errnoOf } from '../core/errors.js';
import { nodeFileSystem, type FileSystemCalls } from '../core/file-system.js';

/** Something that names one process on one machine, of one boot. */
export interface ProcessIdentity {
  /** The kernel's boot id, its first 64 bits in hex. */
  readonly boot: string;
  /** The inodes of the pid and time namespaces. A number is reused only when all processes of the old one are dead. */
  readonly namespace: string;
  readonly pid: number;
  /** Clock ticks from boot to its start, as `/proc/<pid>/stat` says. */
  readonly started: string;
}

/** Identifies this process and tells whether others live. */
export class ProcessTable {
  #self: { readonly identity: ProcessIdentity | undefined } | undefined;

  /** This process; undefined where there is no `/proc` of its own namespace (macOS, Windows). */
  get self(): ProcessIdentity | undefined {
    // It never changes, and reading it takes longer than a small write.
    this.#self ??= { identity: identify() };
    return this.#self.identity;
  }

  /** Whether that process is gone; undefined when it cannot be known from here. */
  isGone(other: ProcessIdentity): boolean | undefined {
    const { self } = this;
    if (self?.boot !== other.boot || self.namespace !== other.namespace) return undefined;
    try {
      // Not /proc: `hidepid` hides processes there that are alive.
      process.kill(other.pid, 0);
    } catch (error) {
      if (errnoOf(error) === 'ESRCH') return true;
    }
    const found = readStat(String(other.pid));
    if (!found) return false;
    // A zombie has ended; without an init process in its container nobody ever reaps it.
    return found.started !== other.started || found.state === 'Z' || found.state === 'X';
  }
}

function identify(): ProcessIdentity | undefined {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.replaceAll('-', '').slice(0, 16);
  const namespace = ['pid', 'time'].map((kind) => namespaceInode(kind)).join('_');
  const stat = readStat('self');
  // A /proc mounted from another pid namespace speaks of other processes.
  if (!boot || namespace.startsWith('_') || stat?.pid !== process.pid) return undefined;
  return { boot, namespace, pid: stat.pid, started: stat.started };
}

/** In base 36; empty when the kernel does not have that kind. */
function namespaceInode(kind: string): string {
  try {
    const inode = /\[(\d+)\]/.exec(procfs.readlink(`/proc/self/ns/${kind}`))?.[1];
    return inode === undefined ? '' : Number(inode).toString(36);
  } catch {
    return '';
  }
}

function readStat(process: string): { pid: number; state: string; started: string } | undefined {
  const text = readText(`/proc/${process}/stat`);
  if (text === undefined) return undefined;
  // "pid (name) state …": the name may hold blanks and parentheses, so count from its end.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined) return undefined;
  return { pid: Number.parseInt(text, 10), state, started: Number(started).toString(36) };
}

/** procfs is answered by the kernel at once, whatever file system the caller works on. */
const procfs: FileSystemCalls = nodeFileSystem.sync;

function readText(path: string): string | undefined {
  // One page is more than any of these files has, and one read of procfs is consistent.
  const page = Buffer.alloc(4096);
  try {
    const fd = procfs.open(path, 0);
    try {
      return page.toString('latin1', 0, procfs.read(fd, page, 0, page.length, 0)).trim();
    } finally {
      procfs.close(fd);
    }
  } catch {
    return undefined;
  }
}
