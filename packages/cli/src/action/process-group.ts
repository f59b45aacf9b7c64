/**
 * A command in a process group of its own, so that it can be stopped together with the processes it has started.
 * Windows has no process groups: there, `taskkill /T` ends the command and what it has started, whatever the signal is.
 *
 * | state      | the command exits | `stop()`                                   | the group is empty | its time is up          |
 * |------------|-------------------|--------------------------------------------|--------------------|-------------------------|
 * | running    | → exited          | → stopping: the whole group gets the signal | –                  | –                       |
 * | exited     | –                 | → stopping, when others are left in the group | –                | –                       |
 * | stopping   | others go on      | the same promise                           | → stopped          | SIGKILL → killed        |
 * | killed     | –                 | the same promise                           | → stopped          | → stopped               |
 */
import { spawn, type ChildProcess, type SpawnOptions, type StdioOptions } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';

import { systemClock } from 'resilient-watcher';
import { errnoOf, isOnWindows, sleep } from 'resilient-watcher/internal';

import { hasOnlyZombies } from './process-table.js';

/** How a command ended. */
export interface ProcessExit {
  /** The exit code; null if a signal ended the command. */
  readonly code: number | null;
  /** The signal that ended the command; null if it exited. */
  readonly signal: NodeJS.Signals | null;
}

/** The kernel reports the end of a child process but not of a group, so the group is polled, ms. */
const POLL_MS = 10;

/** How long to wait for killed processes, ms. One that hangs in the kernel, as on a dead NFS server, stays longer. */
const KILLED_TIMEOUT_MS = 5_000;

/** A running command and the processes it has started, except those that have left the group (`setsid(2)`). */
export class ProcessGroup {
  readonly child: ChildProcess;
  /** Rejects when the command could not be started. */
  readonly exited: Promise<ProcessExit>;
  #isOver = false;
  #stopping: Promise<void> | undefined;

  /** @throws {Error} when `spawn` fails synchronously, for example with E2BIG. */
  constructor(command: string, args: readonly string[], options: SpawnOptions) {
    const output = outputOf(options.stdio);
    try {
      // On Windows, that would be a console of its own.
      const detached = !isOnWindows();
      this.child = spawn(command, args, { ...options, stdio: output.stdio, detached });
    } finally {
      output.close();
    }
    this.exited = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.exited.catch(() => (this.#isOver = true));
  }

  /** Signals only the command itself. Has no effect if it has ended. */
  signalLeader(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Signals the group, and kills the processes that are left after `timeoutMs`. Resolves when all have ended. */
  stop(signal: NodeJS.Signals, timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(signal, timeoutMs);
    return this.#stopping;
  }

  async #stop(signal: NodeJS.Signals, timeoutMs: number): Promise<void> {
    this.#send(signal);
    if (!(await this.#ends(timeoutMs))) {
      this.#send('SIGKILL');
      // A killed process may still hold its ports and files.
      await this.#ends(KILLED_TIMEOUT_MS);
    }
    await this.exited.catch(() => undefined);
    this.#isOver = true;
  }

  /** Whether all of its processes end in time. */
  async #ends(timeoutMs: number): Promise<boolean> {
    const deadline = systemClock.monotonic() + timeoutMs;
    while (await this.#isRunning()) {
      if (systemClock.monotonic() >= deadline) return false;
      await sleep(systemClock, POLL_MS);
    }
    return true;
  }

  /**
   * Zombies belong to the group until they are reaped, but do not run. While the command runs, nothing else matters.
   */
  async #isRunning(): Promise<boolean> {
    if (!this.#send(0)) return false;
    const { pid = 0, exitCode, signalCode } = this.child;
    const hasExited = exitCode !== null || signalCode !== null;
    return !hasExited || !(await hasOnlyZombies(pid));
  }

  /** Whether there was a process to signal. */
  #send(signal: NodeJS.Signals | 0): boolean {
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined || this.#isOver) return false;
    try {
      process.kill(-pid, signal);
      return true;
    } catch (error) {
      const errno = errnoOf(error);
      // There are no process groups.
      const isAlone = errno === 'ESRCH' && exitCode === null && signalCode === null;
      if (isAlone && signal !== 0) this.#endTree(pid, signal);
      if (isAlone) return true;
      // Processes of another user cannot be stopped from here, and are not waited for.
      if (errno === 'ESRCH' || errno === 'EPERM') return false;
      throw error;
    }
  }

  /** `taskkill` finds the processes by their parents, so the command is ended last. */
  #endTree(pid: number, signal: NodeJS.Signals): void {
    const killer = spawn('taskkill', ['/pid', String(pid), '/T', '/F'], {
      stdio: 'ignore',
      windowsHide: true,
    });
    const end = (): void => void this.child.kill(signal);
    killer.once('error', end).once('exit', end);
  }
}

/**
 * The `stdio` of a command, with reopened pipes. libuv makes a pipe that is shared with this process blocking for both,
 * and then a reader that stalls would block the event loop at its next line of output.
 */
function outputOf(given: StdioOptions = 'pipe'): { readonly stdio: StdioOptions; close(): void } {
  const entries = typeof given === 'string' ? ([given, given, given] as const) : given;
  const opened: number[] = [];
  const stdio = entries.map((entry, descriptor) => {
    const shared = entry === 'inherit' ? descriptor : entry;
    const reopened = descriptor > 0 && typeof shared === 'number' ? reopenedPipe(shared) : undefined;
    if (reopened !== undefined) opened.push(reopened);
    return reopened ?? entry;
  });
  return { stdio, close: () => opened.forEach((descriptor) => closeSync(descriptor)) };
}

/**
 * Undefined if it is no pipe, or cannot be opened: it belongs to another user, its reader is gone, or there is no
 * /proc.
 */
function reopenedPipe(descriptor: number): number | undefined {
  try {
    if (!fstatSync(descriptor).isFIFO()) return undefined;
    // Without waiting for a reader; the command gets it as a blocking one.
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}
