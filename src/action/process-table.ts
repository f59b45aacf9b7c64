/** The processes in `/proc` (`proc_pid_stat(5)`). */
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';

import { parseProcessStat, type ProcessStat } from '../core/process.js';

/**
 * The processes of a program by its name, without those whose parent is also one, so that only the master process of
 * nginx is found. The current process is never included.
 */
export async function processesNamed(name: string): Promise<number[]> {
  const running = (await processes()).filter(({ pid, hasEnded }) => !hasEnded && pid !== process.pid);
  const programs = await Promise.all(running.map(({ pid }) => programOf(pid)));
  const matching = running.filter(({ command }, index) => command === name || programs[index] === name);
  const matched = new Set(matching.map(({ pid }) => pid));
  return matching.filter(({ parent }) => !matched.has(parent)).map(({ pid }) => pid);
}

/**
 * Whether nothing but zombies is left of this group, which is not empty. Without an init process, as in most containers,
 * nobody reaps them. False if `/proc` does not show its processes.
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

/** The file name of its program, which may be longer than the name that the kernel keeps. */
async function programOf(pid: number): Promise<string> {
  const [program = ''] = (await textOf(pid, 'cmdline')).split('\0');
  return basename(program);
}

function textOf(pid: number | string, file: 'stat' | 'cmdline'): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
}
