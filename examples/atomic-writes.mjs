/**
 * A sidecar that renews a certificate: it hands the pair to its neighbours as one revision of a volume, and
 * keeps what it must remember in a file. `node examples/atomic-writes.mjs`
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { AtomicVolume, ResilientWatcher, WriteError, atomicWriteFile } from 'resilient-watcher';

const directory = await mkdtemp(join(tmpdir(), 'atomic-writes-'));

// What is remembered: whole or not at all, for its owner only, and still there after a power cut.
const state = join(directory, 'state/serial.json');
await atomicWriteFile(state, JSON.stringify({ serial: 1 }), { createDirectory: true });
const again = await atomicWriteFile(state, JSON.stringify({ serial: 1 }), { ifChanged: true });
console.log('state:', await readFile(state, 'utf8'), '| written again:', again.written);

// What is published: both files in one swap, laid out as a mounted Secret.
const volume = new AtomicVolume(join(directory, 'tls'), { createDirectory: true, graceMs: 1000 });
const publish = (serial) =>
  volume.write({ 'tls.crt': `certificate ${serial}`, 'tls.key': { data: `key ${serial}`, mode: 0o400 } });
await publish(1);

// A neighbour watches it as it would watch a Secret, and reads the pair from one revision.
const renewed = new Promise((resolve) => {
  const watcher = new ResilientWatcher(join(volume.directory, 'tls.crt'));
  watcher.on('change', async () => {
    const { files } = await volume.read();
    console.log('neighbour:', `${files.get('tls.crt')}, ${files.get('tls.key')}`);
    if (`${files.get('tls.crt')}` === 'certificate 2') resolve(watcher.close());
    else await publish(2);
  });
  void watcher.start();
});
await renewed;
console.log('equal set, new revision:', (await publish(2)).changed);

// What fails says what, where and what readers see.
try {
  await atomicWriteFile(join(directory, 'missing/file'), 'x');
} catch (error) {
  if (!(error instanceof WriteError)) throw error;
  console.log(error.code, 'at', error.step, '| readers see it:', error.published);
}

await rm(directory, { recursive: true });
