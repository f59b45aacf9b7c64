/**
 * Watches a file, or a tree, with the built package and prints what happens, one JSON object a line. Closes at
 * SIGTERM or, in a worker, at a message; nothing else ends it but the end of its work. SIGWINCH does nothing but
 * interrupt the thread that gets it. `unprivileged`: root gives that up first.
 *
 *     node watch.mjs PATH '{"backend":"fs"}' [unprivileged]
 */
import { parentPort } from 'node:worker_threads';

import { ResilientWatcher } from 'resilient-watcher';

const [path, options, unprivileged] = process.argv.slice(2);
const say = (event, details = {}) => console.log(JSON.stringify({ event, ...details }));

const watcher = new ResilientWatcher(path, JSON.parse(options));
watcher.on('change', ({ current, cause }) =>
  say('change', {
    content: current.kind === 'missing' ? null : String(current.content),
    files: [...current.files.keys()].sort().join(' '),
    cause,
  }),
);
watcher.on('degraded', ({ error }) => say('degraded', { code: error.code, sysctl: error.sysctl ?? null }));
watcher.on('restart', ({ attempt }) => say('restart', { attempt }));
watcher.on('recovered', ({ backend }) => say('recovered', { backend }));
watcher.on('warning', ({ message }) => say('warning', { message }));
watcher.on('unreadable', ({ error }) => say('error', { message: error.message }));
watcher.on('error', (error) => say('error', { message: error.message }));

const close = async () => {
  await watcher.close();
  say('closed');
};
if (parentPort) parentPort.once('message', close);
else {
  process.once('SIGTERM', close);
  process.on('SIGWINCH', () => undefined);
}

if (unprivileged) {
  // Modules that are loaded later may not be readable then.
  await import('@parcel/watcher');
  process.setgid(65534);
  process.setuid(65534);
}

await watcher.start();
const { state, backend, degraded } = watcher.status();
say('started', { state, backend, degraded });
