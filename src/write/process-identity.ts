/**
 * Identifies a process for good. A PID alone is reused, and in containers every first process has PID 1, so a
 * process is identified by the boot of its kernel, its PID and time namespaces, its PID there, and its start time.
 * A process in the same namespaces can find out whether it has ended; for any other the answer is `undefined`.
 */
import { nodeFileSystem, type FileSystemCalls } from '../core/file-system.js';
import { findProcess, readProcessStat, type FoundProcess } from '../core/process.js';

/** Identifies one process of one boot of one kernel. */
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

/** Identifies this process and finds out whether others have ended. */
export class ProcessIdentifier {
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
    const found = new Map<number, FoundProcess>();
    return ({ boot, namespace, pid, started }) => {
      if (self?.boot !== boot || self.namespace !== namespace) return undefined;
      const process = found.get(pid) ?? findProcess(pid);
      found.set(pid, process);
      if (process === 'ended') return true;
      return process !== 'hidden' && startedAt(process) !== started;
    };
  }
}

function identify(): ProcessIdentity | undefined {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.replaceAll('-', '').slice(0, 16);
  const namespace = ['pid', 'time'].map((kind) => namespaceInode(kind)).join('_');
  const stat = readProcessStat('self');
  // A /proc that was mounted from another PID namespace describes other processes.
  if (!boot || namespace.startsWith('_') || stat?.pid !== process.pid) return undefined;
  return { boot, namespace, pid: stat.pid, started: startedAt(stat) };
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

/** In base 36, as in names. */
function startedAt({ startTime }: { readonly startTime: string }): string {
  return Number(startTime).toString(36);
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
