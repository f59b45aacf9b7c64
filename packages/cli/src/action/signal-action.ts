import { readFile, stat } from 'node:fs/promises';
import { constants } from 'node:os';

import { errnoOf, isOnWindows, nonEmptyString, resolveOptions } from 'resilient-watcher/internal';

import { type Action, actionFailed } from './action.js';
import { findProcess, ownProcesses, processesNamed, startedAt } from './process-table.js';

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

/** For a PID file that was written in another container. */
const SHARE = 'a sidecar needs shareProcessNamespace: true in its pod';

/** The time of a file may be that of a file server, and a clock is set now and then, ms. */
const CLOCK_LEEWAY_MS = 10_000;

/** On Windows any other signal is refused by the system, and these end the process. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGKILL', 'SIGQUIT', 'SIGTERM'];

/**
 * Signals a process, as `kill -HUP` does. The current process and those above it are never signaled. If the process has
 * ended and its PID now belongs to another one, the run fails, as long as the PID file has not been replaced: known is
 * what ran at the start of the `ReloadAction`, and a process that was started later than the PID file was written is
 * another one.
 * @throws {TypeError} for anything but the name of a signal, or anything but one target; on Windows for a signal that
 * the system does not have.
 */
export function signalAction(signal: NodeJS.Signals, target: SignalTarget): Action {
  if (!isSignal(signal))
    throw new TypeError('signalAction: signal must be the name of a signal, such as SIGHUP');
  if (isOnWindows() && !ENDING.includes(signal))
    throw new TypeError(`signalAction: Windows has no ${signal}; use a command or a webhook instead`);
  const { pidFile, processName } = resolveOptions('signalAction', target, TARGET);
  if ((pidFile === undefined) === (processName === undefined)) {
    throw new TypeError('signalAction: give either "pidFile" or "processName"');
  }
  const name = `${signal} to the process ${pidFile === undefined ? `"${processName}"` : `in ${pidFile}`}`;
  const find = pidFile === undefined ? () => pidsNamed(name, processName ?? '') : pidIn(name, pidFile);
  return {
    name,
    kind: 'signal',
    ...(pidFile !== undefined && { prepare: () => find().then(() => undefined) }),
    async run() {
      for (const pid of await find()) send(name, pid, signal);
    },
  };
}

async function pidsNamed(name: string, processName: string): Promise<readonly number[]> {
  const pids = await processesNamed(processName);
  if (pids.length > 0) return pids;
  throw actionFailed(name, `there is no such process; ${SHARE}`);
}

/** Remembers when the process was started, to tell it from another one that has been given the same PID. */
function pidIn(name: string, path: string): () => Promise<readonly number[]> {
  let known: { readonly file: string; readonly start: string } | undefined;
  return async () => {
    const { pid, file, writtenAt } = await readPidFile(name, path);
    if (ownProcesses().has(pid)) {
      const what =
        pid === process.pid ? 'this program itself' : 'a process that this program itself runs under';
      throw actionFailed(
        name,
        `its PID ${pid} is ${what}, and means a process of another container; ${SHARE}`,
      );
    }
    const found = findProcess(pid);
    const start = typeof found === 'string' ? found : found.startTime;
    const isLater =
      typeof found !== 'string' && (startedAt(found) ?? -Infinity) > writtenAt + CLOCK_LEEWAY_MS;
    if (known?.file !== file) known = { file, start: isLater ? 'ended' : start };
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
): Promise<{ readonly pid: number; readonly file: string; readonly writtenAt: number }> {
  const { text, file, writtenAt } = await contentOf(path).catch((cause: unknown) => {
    const errno = errnoOf(cause);
    const what = errno === 'ENOENT' ? 'does not exist' : `cannot be read (${errno ?? String(cause)})`;
    throw actionFailed(name, `the file ${what}`, cause);
  });
  // 0 and negative numbers mean process groups; 1 is the application, if its container shares its processes with us.
  if (!/^[1-9]\d{0,8}$/.test(text)) throw actionFailed(name, 'the file does not contain a process ID');
  return { pid: Number(text), file, writtenAt };
}

async function contentOf(
  path: string,
): Promise<{ readonly text: string; readonly file: string; readonly writtenAt: number }> {
  const stats = await stat(path, { bigint: true });
  // A pipe without a writer would not be read to its end.
  const text = stats.isFile() ? (await readFile(path, 'latin1')).trim() : '';
  return { text, file: `${stats.ino} ${stats.mtimeNs} ${text}`, writtenAt: Number(stats.mtimeMs) };
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
