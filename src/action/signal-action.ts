import { readFile } from 'node:fs/promises';

import { errnoOf } from '../core/errno.js';
import { ActionError } from '../core/errors.js';
import type { Action } from './action.js';
import { processesNamed } from './process-table.js';

/** Which process to signal; looked up at each run. */
export type SignalTarget =
  | { readonly pid: number }
  /** A file that holds the process ID. */
  | { readonly pidFile: string }
  /** The name of the program. Of its processes those are signalled whose parent is not one of them. */
  | { readonly processName: string };

/** Signals a process, as `kill -HUP` does. */
export function signalAction(signal: NodeJS.Signals, target: SignalTarget): Action {
  const name = `${signal} to ${describeTarget(target)}`;
  return {
    name,
    kind: 'signal',
    async run() {
      for (const pid of await pidsOf(name, target)) send(name, pid, signal);
    },
  };
}

function describeTarget(target: SignalTarget): string {
  if ('pid' in target) return `process ${target.pid}`;
  return 'pidFile' in target ? `the process in ${target.pidFile}` : `the process "${target.processName}"`;
}

async function pidsOf(name: string, target: SignalTarget): Promise<readonly number[]> {
  if ('pid' in target) return [target.pid];
  if ('pidFile' in target) return [await pidIn(name, target.pidFile)];
  const pids = await processesNamed(target.processName);
  if (pids.length > 0) return pids;
  throw failed(name, 'no such process; with a sidecar the pod needs shareProcessNamespace: true');
}

async function pidIn(name: string, file: string): Promise<number> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw failed(name, `the file cannot be read (${errnoOf(cause) ?? String(cause)})`, cause);
  }
  // 0 and negative numbers mean process groups; 1 is allowed, since it is the application in its container.
  if (!/^[1-9]\d{0,9}$/.test(text.trim())) throw failed(name, 'the file holds no process ID');
  return Number(text.trim());
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
