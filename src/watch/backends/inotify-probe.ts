import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * Shows that a new inotify instance can be had, and gives it back. It takes some 20 ms, most of them the
 * start of a thread: `fs.watch` here would reuse the instance this event loop may have already, while a
 * worker's own loop needs a new one.
 *
 * A thread and its descriptors cost more than an instance alone, so a process that is out of either is found
 * out here too.
 * @throws the error of `fs.watch` (`EMFILE`, `ENOSPC`) or of the worker (`ERR_WORKER_INIT_FAILED`).
 */
export async function probeInotify(): Promise<void> {
  const worker = new Worker(`require('node:fs').watch('/').close()`, {
    eval: true,
    // Preloads of the program (--import, NODE_OPTIONS) have no business here.
    execArgv: [],
    env: {},
  });
  // The instance is free again when the thread has ended, not before.
  await once(worker, 'exit');
}
