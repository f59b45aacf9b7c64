/**
 * `process.exit()` waits for the calls in the thread pool, and a call to a dead file server never returns.
 *
 * | calls in the thread pool | Node.js 22.15 and later, with `/bin/sh` | others                              |
 * |--------------------------|-----------------------------------------|-------------------------------------|
 * | none                     | `process.exit()`                        | `process.exit()`                    |
 * | one that does not return | a shell in its place exits with the code | SIGKILL, which a shell sees as 137 |
 */
import { systemClock } from '../core/clock.js';
import { sleep } from '../core/sleep.js';
import { becomeShell } from './replace-process.js';

/** How long calls may take that were begun before the end, ms. */
const CALLS_MS = 500;
const POLL_MS = 10;

/** Ends the process with this exit code. */
export async function endProcess(exitCode: number): Promise<never> {
  const deadline = systemClock.monotonic() + CALLS_MS;
  while (hasCalls()) {
    if (systemClock.monotonic() >= deadline) {
      becomeShell(`exit ${exitCode}`);
      process.kill(process.pid, 'SIGKILL');
    }
    await sleep(systemClock, POLL_MS);
  }
  return process.exit(exitCode);
}

/** Whether a thread is occupied, by a file system or by the resolver of host names. */
function hasCalls(): boolean {
  return process
    .getActiveResourcesInfo()
    .some((name) => /^(FSReq|FileHandle|GetAddrInfo|GetNameInfo)/.test(name));
}
