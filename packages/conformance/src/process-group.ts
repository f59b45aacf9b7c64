/** The program in a process group of its own, so that it ends together with the processes that it has started. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;
/** A process that hangs in the kernel, as on a dead NFS server, stays longer. */
const KILLED_TIMEOUT_MS = 5_000;

export class ProcessGroup {
  readonly child: ChildProcess;
  /** Resolves to how it ended, or to why it could not be started. */
  readonly ended: Promise<string>;

  /** @throws {Error} when `spawn` fails at once, for example with E2BIG. */
  constructor(command: readonly string[], options: SpawnOptions) {
    const [file = '', ...args] = command;
    this.child = spawn(file, args, { ...options, detached: true });
    this.ended = new Promise((resolve) => {
      this.child.once('error', ({ message }) => resolve(message));
      this.child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with code ${String(code)}` : `killed by ${signal}`),
      );
    });
  }

  /** The processes that run. */
  get members(): string[] {
    return this.child.pid === undefined ? [] : membersOf(this.child.pid);
  }

  /** Whether there was a process to signal. */
  signal(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.child;
    if (pid === undefined) return false;
    try {
      process.kill(-pid, signal);
      return true;
    } catch {
      return false;
    }
  }

  /** Kills all its processes, and waits until none runs. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    const deadline = performance.now() + KILLED_TIMEOUT_MS;
    while (this.#isRunning() && performance.now() < deadline) await sleep(POLL_MS);
    if (this.child.pid !== undefined)
      await Promise.race([this.ended, sleep(KILLED_TIMEOUT_MS, undefined, { ref: false })]);
  }

  /** Zombies belong to the group until they are reaped, but do not run. */
  #isRunning(): boolean {
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined || !this.signal(0)) return false;
    return (exitCode === null && signalCode === null) || membersOf(pid).length > 0;
  }
}

/** The processes of a group that are no zombies. Without /proc: none. */
function membersOf(group: number): string[] {
  try {
    return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && isMember(pid, group));
  } catch {
    return [];
  }
}

function isMember(pid: string, group: number): boolean {
  try {
    // After the name, which may contain anything: state, parent, group.
    const [state, , member] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return state !== 'Z' && Number(member) === group;
  } catch {
    return false; // it has ended
  }
}
