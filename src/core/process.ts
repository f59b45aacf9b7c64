/** Other processes, as the kernel shows them. */
import { readFileSync } from 'node:fs';

import { errnoOf } from './errno.js';

/** The process with a PID; `hidden` when it runs and nothing else is known of it. */
export type FoundProcess = ProcessStat | 'hidden' | 'ended';

/** Looks up the process with this PID. A zombie has ended. */
export function findProcess(pid: number): FoundProcess {
  try {
    // Not /proc alone: the mount option `hidepid` hides processes of other users there.
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

/** What `/proc` says of a process; undefined if there is none, it is hidden, or there is no `/proc`. */
export function readProcessStat(pid: number | 'self'): ProcessStat | undefined {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** A line of `/proc/<pid>/stat` (`proc_pid_stat(5)`), as far as it is used. */
interface ProcessStat {
  readonly pid: number;
  readonly command: string;
  readonly parent: number;
  /** The ID of its process group. */
  readonly group: number;
  /** In clock ticks since boot; with the PID it identifies a process, since PIDs are reused. */
  readonly startTime: string;
  /** A zombie has ended; in a container without an init process it is never reaped. */
  readonly hasEnded: boolean;
}

/** Undefined for a text that is no such line. */
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
