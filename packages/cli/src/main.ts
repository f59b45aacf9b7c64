/** The program `resilient-watcher` as a process. */
import { systemClock } from 'resilient-watcher';

import { endProcess } from './end-process.js';
import { becomeInit } from './init.js';
import { main } from './program.js';

const { stdout, stderr, env } = process;

// The reader of the output is gone. Keep watching.
for (const stream of [stdout, stderr]) stream.on('error', () => undefined);

/**
 * Runs the program, and ends the process.
 * @param onHandled is called once the signals that stop a process are handled.
 */
export async function start(onHandled: () => void): Promise<never> {
  const exitCode = await main(process.argv.slice(2), {
    stdin: () => process.stdin,
    stdout,
    stderr,
    descriptors: [0, 1, 2],
    env,
    signals: {
      on(signal, listener) {
        process.on(signal, listener);
        onHandled();
      },
    },
    clock: systemClock,
    becomeInit: process.pid === 1 ? becomeInit : undefined,
  });
  return endProcess(exitCode);
}
