/** The processes in `/proc` (`proc_pid_stat(5)`). */
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

import { findProcess, parseProcessStat } from '../core/process.js';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly names: readonly string[];
}

/**
 * The processes of a program by its name, without those whose parent is also one, so that only the master process of
 * nginx is found. The current process is never included.
 */
export async function processesNamed(name: string): Promise<number[]> {
  const matching = (await runningProcesses()).filter(
    ({ pid, names }) => pid !== process.pid && names.includes(name),
  );
  const matched = new Set(matching.map(({ pid }) => pid));
  return matching.filter(({ parent }) => !matched.has(parent)).map(({ pid }) => pid);
}

/** Whether a process of this group runs, as far as `/proc` shows. A zombie does not. */
export async function isGroupRunning(group: number): Promise<boolean> {
  return (await runningProcesses()).some((found) => found.group === group);
}

/** No process: see {@link startTimeOf}. */
export const ENDED = 'ended';

/** When a process was started; `ENDED` when there is none with this PID, undefined if `/proc` does not show it. */
export function startTimeOf(pid: number): string | undefined {
  const found = findProcess(pid);
  if (found === 'ended') return ENDED;
  return found === 'hidden' ? undefined : found.startTime;
}

async function runningProcesses(): Promise<Process[]> {
  const entries = await readdir('/proc').catch(() => []);
  const pids = entries.filter((entry) => /^\d+$/.test(entry)).map(Number);
  return (await Promise.all(pids.map(readProcess))).flatMap((found) => found ?? []);
}

/** Undefined for a process that has ended meanwhile. */
async function readProcess(pid: number): Promise<Process | undefined> {
  try {
    const [stat, commandLine] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ]);
    const found = parseProcessStat(stat);
    if (!found || found.hasEnded) return undefined;
    const { parent, group, command } = found;
    const [program = ''] = commandLine.split('\0');
    return { pid, parent, group, names: [command, basename(program)] };
  } catch {
    return undefined;
  }
}
