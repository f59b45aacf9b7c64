import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * Checks that a new inotify instance is available, and releases it. Takes some 20 ms, most of them to start a
 * thread: here `fs.watch` would reuse the instance that this event loop may have already, while a worker's event
 * loop needs a new one.
 *
 * A thread and its descriptors cost more than an instance, so this also fails in a process that has run out of
 * threads or descriptors.
 * @throws the error of `fs.watch` (`EMFILE`, `ENOSPC`) or of the worker (`ERR_WORKER_INIT_FAILED`).
 */
export async function probeInotify(): Promise<void> {
  const worker = new Worker(`require('node:fs').watch('/').close()`, {
    eval: true,
    // Without the preloads of the program (--import, NODE_OPTIONS).
    execArgv: [],
    env: {},
  });
  // The instance is released when the thread ends.
  await once(worker, 'exit');
}
