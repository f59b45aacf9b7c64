/**
 * `process.exit()` waits for the calls in the thread pool, and a call to a dead file server never returns.
 *
 * | calls in the thread pool | Node.js 22.15 and later, with `/bin/sh` | others                              |
 * |--------------------------|-----------------------------------------|-------------------------------------|
 * | none                     | `process.exit()`                        | `process.exit()`                    |
 * | one that does not return | a shell in its place exits with the code | SIGKILL, which a shell sees as 137 |
 *
 * Under the permission model of Node.js a call that was refused always looks like one that does not return, so
 * there it is always `process.exit()`.
 */
import { systemClock } from 'resilient-watcher';
import { sleep } from 'resilient-watcher/internal';

import { becomeShell } from './replace-process.js';

/**
 * How often, and at which interval in ms, to ask whether the calls begun before the end have returned. Polls are counted
 * instead of time, so that time during which the process is suspended does not count.
 */
const POLLS = 50;
const POLL_MS = 10;

/** Ends the process with this exit code. */
export async function endProcess(exitCode: number): Promise<never> {
  for (let poll = 0; hasCalls(); poll += 1) {
    if (poll === POLLS) {
      becomeShell(`exit ${exitCode}`);
      process.kill(process.pid, 'SIGKILL');
    }
    await sleep(systemClock, POLL_MS);
  }
  return process.exit(exitCode);
}

/** Whether a thread is occupied, by a file system or by the resolver of host names. */
function hasCalls(): boolean {
  if (Reflect.has(process, 'permission')) return false;
  return process
    .getActiveResourcesInfo()
    .some((name) => /^(FSReq|FileHandle|GetAddrInfo|GetNameInfo)/.test(name));
}
