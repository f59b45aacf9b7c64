/** Looks up other processes. */
import { readFileSync } from 'node:fs';

import { errnoOf } from './errno.js';

/** The process with a PID; `hidden` if it runs but nothing else is known about it. */
type FoundProcess = ProcessStat | 'hidden' | 'ended';

/** Looks up the process with this PID. A zombie has ended. */
export function findProcess(pid: number): FoundProcess {
  try {
    // /proc alone is not enough, because the mount option `hidepid` hides processes of other users.
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return 'ended';
  }
  const stat = readProcessStat(pid);
  if (!stat) return 'hidden';
  return stat.hasEnded ? 'ended' : stat;
}

/** Whether a process with this PID runs. A zombie does not. */
export function isRunning(pid: number): boolean {
  return findProcess(pid) !== 'ended';
}

/** What `/proc` says about a process; undefined if it does not exist or is hidden, or there is no `/proc`. */
export function readProcessStat(pid: number | 'self'): ProcessStat | undefined {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** The fields of `/proc/<pid>/stat` (`proc_pid_stat(5)`) that are used. */
export interface ProcessStat {
  readonly pid: number;
  readonly command: string;
  readonly parent: number;
  /** The ID of its process group. */
  readonly group: number;
  /** In clock ticks since boot. Together with the PID it identifies a process, because PIDs are reused. */
  readonly startTime: string;
  /** A zombie has ended; in a container without an init process it is never reaped. */
  readonly hasEnded: boolean;
}

/** Undefined if the text is not such a line. */
export function parseProcessStat(text: string): ProcessStat | undefined {
  // "pid (command) state parent …": the command may contain spaces and parentheses, so fields are counted from its end.
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [state, parent, group] = fields;
  // The fields are numbered from 1, and the state is the third.
  const startTime = fields[22 - 3];
  if (state === undefined || group === undefined || startTime === undefined) return undefined;
  return {
    pid: Number.parseInt(text, 10),
    command: text.slice(text.indexOf('(') + 1, end),
    parent: Number(parent),
    group: Number(group),
    startTime,
    hasEnded: state === 'Z' || state === 'X',
  };
}
