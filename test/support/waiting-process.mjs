/** Begins to write a file and waits for data that never comes: `waiting-process.mjs FILE`. Says "waiting". */
import { atomicWriteFile } from 'resilient-watcher';

async function* never() {
  yield 'half';
  process.stdout.write(`waiting as ${process.pid}\n`);
  await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
}
await atomicWriteFile(process.argv[2], never());
