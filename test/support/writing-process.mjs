/**
 * Writes to a file and to a volume until it is killed, or a number of times: `writing-process.mjs FILE VOLUME [TIMES]`.
 * What it writes says itself whether it is whole. Says "writing" when it begins.
 */
import { setImmediate } from 'node:timers/promises';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';

const [file, directory, times = Infinity] = process.argv.slice(2);
const volume = new AtomicVolume(directory, { durability: 'none' });

/** First its size and its letter, then the letter as often as the size says. */
function whole(count) {
  const size = 1 + ((count * 7919) % 200_000);
  const letter = String.fromCharCode(97 + (count % 26));
  return `${size} ${letter}\n${letter.repeat(size)}`;
}

/** Slowly, so that most of the time a file is unfinished. */
async function* pieces(text) {
  for (let at = 0; at < text.length; at += 10_000) {
    yield text.slice(at, at + 10_000);
    await setImmediate();
  }
}

process.stdout.write('writing\n');
for (let count = process.pid; count < process.pid + Number(times); count += 1) {
  const pair = whole(count % 1000);
  await Promise.all([
    atomicWriteFile(file, pieces(whole(count)), { durability: 'none' }),
    // The set of keys changes too.
    volume.write({ 'tls.crt': pair, 'tls.key': pair, [`extra-${count % 3}`]: pair }),
  ]);
}
