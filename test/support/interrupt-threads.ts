import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { errnoOf } from '../../src/core/errors/errno.js';

/**
 * Interrupts the system calls of all threads of a process but the main one until `isOver`. Which thread is which cannot
 * be seen from outside, so each gets the signal in turn: SIGWINCH, because one that comes late does no harm.
 */
export async function interruptThreads(pid: number, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (const thread of readdirSync(`/proc/${pid}/task`).map(Number)) {
      if (thread !== pid) interrupt(thread);
      await setImmediate(); // A signal that is still pending when the next is sent swallows that one.
    }
  }
}

function interrupt(thread: number): void {
  try {
    process.kill(thread, 'SIGWINCH');
  } catch (error) {
    // The one that was interrupted has ended.
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}
