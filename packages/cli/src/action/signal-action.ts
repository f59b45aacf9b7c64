import { readFile, stat } from 'node:fs/promises';
import { constants } from 'node:os';

import { errnoOf, nonEmptyString, resolveOptions } from 'resilient-watcher/internal';

import { type Action, actionFailed } from './action.js';
import { findProcess, processesNamed } from './process-table.js';

/** The processes to signal, looked up at each run. */
export type SignalTarget =
  /** A file that holds the process ID. */
  | { readonly pidFile: string }
  /** The name of the program or script. Its processes are signaled, except those whose parent is also one of them. */
  | { readonly processName: string };

const TARGET = { pidFile: nonEmptyString(undefined), processName: nonEmptyString(undefined) };

/** Whether a value is the name of a signal of this system. */
export function isSignal(value: unknown): value is NodeJS.Signals {
  return Object.hasOwn(constants.signals, String(value));
}

/**
 * Signals a process, as `kill -HUP` does. If the process has ended and its PID now belongs to another process, the run
 * fails, as long as the PID file has not been replaced.
 * @throws {TypeError} for anything but the name of a signal, or anything but one target.
 */
export function signalAction(signal: NodeJS.Signals, target: SignalTarget): Action {
  if (!isSignal(signal))
    throw new TypeError('signalAction: signal must be the name of a signal, such as SIGHUP');
  const { pidFile, processName } = resolveOptions('signalAction', target, TARGET);
  if ((pidFile === undefined) === (processName === undefined)) {
    throw new TypeError('signalAction: give either "pidFile" or "processName"');
  }
  const name = `${signal} to the process ${pidFile === undefined ? `"${processName}"` : `in ${pidFile}`}`;
  const find = pidFile === undefined ? () => pidsNamed(name, processName ?? '') : pidIn(name, pidFile);
  return {
    name,
    kind: 'signal',
    async run() {
      for (const pid of await find()) send(name, pid, signal);
    },
  };
}

async function pidsNamed(name: string, processName: string): Promise<readonly number[]> {
  const pids = await processesNamed(processName);
  if (pids.length > 0) return pids;
  throw actionFailed(
    name,
    'there is no such process; a sidecar needs shareProcessNamespace: true in its pod',
  );
}

/** Remembers when the process was started, to tell it from another one that has been given the same PID. */
function pidIn(name: string, path: string): () => Promise<readonly number[]> {
  let known: { readonly file: string; readonly start: string } | undefined;
  return async () => {
    const { pid, file } = await readPidFile(name, path);
    const found = findProcess(pid);
    const start = typeof found === 'string' ? found : found.startTime;
    if (known?.file !== file) known = { file, start };
    const isOther = start !== known.start && start !== 'ended';
    if (isOther && start !== 'hidden' && known.start !== 'hidden') {
      throw actionFailed(name, `the process has ended, and its PID ${pid} now belongs to another one`);
    }
    return [pid];
  };
}

/** The PID, and an identifier of the file that changes when the file is replaced. */
async function readPidFile(
  name: string,
  path: string,
): Promise<{ readonly pid: number; readonly file: string }> {
  const { text, file } = await contentOf(path).catch((cause: unknown) => {
    const errno = errnoOf(cause);
    const what = errno === 'ENOENT' ? 'does not exist' : `cannot be read (${errno ?? String(cause)})`;
    throw actionFailed(name, `the file ${what}`, cause);
  });
  // 0 and negative numbers mean process groups; 1 is allowed, since it is the application in its container.
  if (!/^[1-9]\d{0,8}$/.test(text)) throw actionFailed(name, 'the file does not contain a process ID');
  return { pid: Number(text), file };
}

async function contentOf(path: string): Promise<{ readonly text: string; readonly file: string }> {
  const stats = await stat(path, { bigint: true });
  // A pipe without a writer would not be read to its end.
  const text = stats.isFile() ? (await readFile(path, 'latin1')).trim() : '';
  return { text, file: `${stats.ino} ${stats.mtimeNs} ${text}` };
}

function send(name: string, pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (cause) {
    const errno = errnoOf(cause);
    if (errno === 'ESRCH') throw actionFailed(name, `process ${pid} does not exist`, cause);
    if (errno === 'EPERM') throw actionFailed(name, `process ${pid} belongs to another user`, cause);
    throw actionFailed(name, cause instanceof Error ? cause.message : String(cause), cause);
  }
}
