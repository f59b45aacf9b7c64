/** Other processes, as `/proc` shows them (`proc_pid_stat(5)`). */
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

import { errnoOf } from 'resilient-watcher/internal';

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

/**
 * This process and those above it, such as the init of its container, as far as `/proc` shows them. A signal to one of
 * them is never meant for an application.
 */
export function ownProcesses(): ReadonlySet<number> {
  const own = new Set([process.pid]);
  for (let pid = process.ppid; pid > 0 && !own.has(pid); pid = readProcessStat(pid)?.parent ?? 0)
    own.add(pid);
  return own;
}

/**
 * The processes of a program by its name, without those whose parent is also one, so that only the master process of
 * nginx is found. The current process and those above it are never included.
 */
export async function processesNamed(name: string): Promise<number[]> {
  const own = ownProcesses();
  const running = (await processes()).filter(({ pid, hasEnded }) => !hasEnded && !own.has(pid));
  const programs = await Promise.all(running.map(programsOf));
  const matching = running.filter(
    ({ command }, index) => command === name || programs[index]?.includes(name),
  );
  const matched = new Set(matching.map(({ pid }) => pid));
  return matching.filter(({ parent }) => !matched.has(parent)).map(({ pid }) => pid);
}

/**
 * Whether nothing but zombies is left of this group, which is not empty. Without an init process, as in most
 * containers, nobody reaps them. False if `/proc` does not show its processes.
 */
export async function hasOnlyZombies(group: number): Promise<boolean> {
  const members = (await processes()).filter((each) => each.group === group);
  return members.length > 0 && members.every(({ hasEnded }) => hasEnded);
}

/** All processes, except those that are reaped meanwhile. */
async function processes(): Promise<ProcessStat[]> {
  const entries = await readdir('/proc').catch(() => []);
  const stats = entries.filter((entry) => /^\d+$/.test(entry)).map((pid) => textOf(pid, 'stat'));
  return (await Promise.all(stats)).flatMap((text) => parseProcessStat(text) ?? []);
}

/** `node`, `python3.12`, `/bin/sh`: what runs a script that it is given. */
const INTERPRETER = /^(?:(?:ba|da|a|k|z)?sh|node|nodejs|bun|perl|php|python|ruby)[\d.]*$/;

/** The kernel keeps so much of the name of a process. */
const NAME_BYTES = 15;

/**
 * The file names of its program, and of the script that this runs: the kernel keeps a part of one of them. The second
 * argument of another program, such as of an editor, is no script.
 */
async function programsOf({ pid, command }: ProcessStat): Promise<string[]> {
  const [program = '', argument = ''] = (await textOf(pid, 'cmdline'))
    .split('\0')
    .map((each) => basename(each));
  const isScript = command === argument.slice(0, NAME_BYTES) || INTERPRETER.test(program);
  return isScript ? [program, argument] : [program];
}

function textOf(pid: number | string, file: 'stat' | 'cmdline'): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
}

/** `USER_HZ`, which is 100 on all systems that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/** When a process was started, epoch ms; undefined if `/proc` does not say when the system was. */
export function startedAt({ startTime }: Pick<ProcessStat, 'startTime'>): number | undefined {
  try {
    const [, bootTime] = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1')) ?? [];
    if (bootTime === undefined) return undefined;
    return (Number(bootTime) + Number(startTime) / TICKS_PER_SECOND) * 1_000;
  } catch {
    return undefined;
  }
}

/** What `/proc` says about a process; undefined if it does not exist or is hidden, or there is no `/proc`. */
function readProcessStat(pid: number): ProcessStat | undefined {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** The fields of `/proc/<pid>/stat` (`proc_pid_stat(5)`) that are used. */
interface ProcessStat {
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
function parseProcessStat(text: string): ProcessStat | undefined {
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
