import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

import { errnoOf } from '../core/errno.js';
import { ActionError } from './action-error.js';
import type { Action } from './action.js';
import { ENDED, processesNamed, startTimeOf } from './process-table.js';

/** The process to signal. A PID file or a name is looked up at each run. */
export type SignalTarget =
  /** A process that is running when the action is created. */
  | { readonly pid: number }
  /** A file that holds the process ID. */
  | { readonly pidFile: string }
  /** The name of the program. Its processes are signaled, except those whose parent is also one of them. */
  | { readonly processName: string };

/**
 * Signals a process, as `kill -HUP` does. If the process has ended and its PID now belongs to another process, the run
 * fails; with a PID file, this is detected as long as the file has not been replaced.
 */
export function signalAction(signal: NodeJS.Signals, target: SignalTarget): Action {
  const name = `${signal} to ${describeTarget(target)}`;
  const find = finderOf(name, target);
  return {
    name,
    kind: 'signal',
    async run() {
      for (const pid of await find()) send(name, pid, signal);
    },
  };
}

function describeTarget(target: SignalTarget): string {
  if ('pid' in target) return `process ${target.pid}`;
  return 'pidFile' in target ? `the process in ${target.pidFile}` : `the process "${target.processName}"`;
}

/** Returns the function that looks up the processes to signal. */
function finderOf(name: string, target: SignalTarget): () => readonly number[] | Promise<readonly number[]> {
  if ('processName' in target) return () => pidsNamed(name, target.processName);
  if ('pid' in target) {
    const { pid } = target;
    const startTime = startTimeOf(pid);
    return () => {
      refuseReused(name, pid, startTime, startTimeOf(pid));
      return [pid];
    };
  }
  let known: { readonly file: string; readonly startTime: string | undefined } | undefined;
  return async () => {
    const { pid, file } = await readPidFile(name, target.pidFile);
    const startTime = startTimeOf(pid);
    if (known?.file === file) refuseReused(name, pid, known.startTime, startTime);
    else known = { file, startTime };
    return [pid];
  };
}

function refuseReused(name: string, pid: number, before: string | undefined, now: string | undefined): void {
  if (before === undefined || now === undefined || now === ENDED || before === now) return;
  throw failed(name, `the process has ended, and its PID ${pid} now belongs to another one`);
}

async function pidsNamed(name: string, processName: string): Promise<readonly number[]> {
  const pids = await processesNamed(processName);
  if (pids.length > 0) return pids;
  throw failed(name, 'there is no such process; a sidecar needs shareProcessNamespace: true in its pod');
}

/** Enough for a PID with white space around it. */
const MAX_PID_FILE_BYTES = 64;

/** The PID, and an identifier of the file that changes when the file is replaced. */
async function readPidFile(
  name: string,
  path: string,
): Promise<{ readonly pid: number; readonly file: string }> {
  let text: string;
  let file: string;
  try {
    // Without waiting for the writer of a named pipe.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const { ino, mtimeNs } = await handle.stat({ bigint: true });
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_PID_FILE_BYTES));
      text = buffer.toString('latin1', 0, bytesRead).trim();
      file = `${ino} ${mtimeNs} ${text}`;
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw failed(name, `the file cannot be read (${errnoOf(cause) ?? String(cause)})`, cause);
  }
  // 0 and negative numbers mean process groups; 1 is allowed, since it is the application in its container.
  if (!/^[1-9]\d{0,9}$/.test(text)) throw failed(name, 'the file does not contain a process ID');
  return { pid: Number(text), file };
}

function send(name: string, pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (cause) {
    const errno = errnoOf(cause);
    if (errno === 'ESRCH') throw failed(name, `process ${pid} does not exist`, cause);
    if (errno === 'EPERM') throw failed(name, `process ${pid} belongs to another user`, cause);
    throw failed(name, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function failed(name: string, reason: string, cause?: unknown): ActionError {
  return new ActionError('ERR_ACTION_PROCESS', `Action ${name} failed: ${reason}`, { cause });
}
