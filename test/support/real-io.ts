import { nextTurn } from '../../src/core/scheduling/event-loop.js';

/** For what follows a call, such as a check that waits for the next turn. */
const QUIET_TURNS = 3;

/**
 * Resolves when the file system calls in flight have ended, and what followed from them. They take real time, however
 * fake the clock is, and the more the busier the machine is: fake time waits for them.
 */
export async function realIo(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet = isInFlight() ? 0 : quiet + 1) await nextTurn();
}

function isInFlight(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
}
