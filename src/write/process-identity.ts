/**
 * Identifies a process for good. A PID alone is reused, and in containers every first process has PID 1, so a process
 * is identified by the boot of its kernel, its PID and time namespaces, its PID there, and its start time. A process
 * in the same namespaces can tell whether it has ended; for any other the answer is `undefined`.
 */
import { errnoOf } from '../core/errno.js';
import { nodeFileSystem, type FileSystemCalls } from '../core/file-system.js';

/** Identifies one process on one machine, of one boot. */
export interface ProcessIdentity {
  /** The kernel's boot ID, its first 64 bits in hex. */
  readonly boot: string;
  /** The inodes of the PID and time namespaces. A number is reused only when all processes of the old one have ended. */
  readonly namespace: string;
  readonly pid: number;
  /** Clock ticks from boot to its start, as in `/proc/<pid>/stat`. */
  readonly started: string;
}

/** Whether a process has ended; undefined when that cannot be known from here. */
export type HasEnded = (process: ProcessIdentity) => boolean | undefined;

/** Identifies this process and tells whether others have ended. */
export class ProcessTable {
  #self: { readonly identity: ProcessIdentity | undefined } | undefined;

  /** This process; undefined where there is no `/proc` of its own namespace (macOS, Windows). */
  get self(): ProcessIdentity | undefined {
    // It never changes, and reading it takes longer than a small write.
    this.#self ??= { identity: identify() };
    return this.#self.identity;
  }

  /** Answers for one sweep: each process is looked up once, however many files carry its name. */
  survey(): HasEnded {
    const { self } = this;
    const found = new Map<number, Lookup>();
    return ({ boot, namespace, pid, started }) => {
      if (self?.boot !== boot || self.namespace !== namespace) return undefined;
      const process = found.get(pid) ?? lookUp(pid);
      found.set(pid, process);
      if (process === 'ended') return true;
      return process !== 'hidden' && process.started !== started;
    };
  }
}

/** The process with a PID; `hidden` when it runs and nothing else is known of it. */
type Lookup = { readonly started: string } | 'ended' | 'hidden';

function lookUp(pid: number): Lookup {
  try {
    // Not /proc: the mount option `hidepid` hides processes of other users there.
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return 'ended';
  }
  const stat = readStat(String(pid));
  if (!stat) return 'hidden';
  // A zombie has ended; in a container without an init process it is never reaped.
  return stat.state === 'Z' || stat.state === 'X' ? 'ended' : stat;
}

function identify(): ProcessIdentity | undefined {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.replaceAll('-', '').slice(0, 16);
  const namespace = ['pid', 'time'].map((kind) => namespaceInode(kind)).join('_');
  const stat = readStat('self');
  // A /proc that was mounted from another PID namespace describes other processes.
  if (!boot || namespace.startsWith('_') || stat?.pid !== process.pid) return undefined;
  return { boot, namespace, pid: stat.pid, started: stat.started };
}

/** In base 36; empty when the kernel does not have that kind of namespace. */
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
  // "pid (name) state …": the name may contain spaces and parentheses, so fields are counted from its end.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined) return undefined;
  return { pid: Number.parseInt(text, 10), state, started: Number(started).toString(36) };
}

/** The kernel answers from memory, whatever file system the caller works on. */
const procfs: FileSystemCalls = nodeFileSystem.sync;

function readText(path: string): string | undefined {
  // None of these files is longer than a page, and one read of procfs is consistent.
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
