/**
 * Reads a file and a volume until its input ends: `reading-process.mjs FILE VOLUME`. Then says what it saw, as
 * JSON: how many reads, how many of them torn, and how often there was nothing.
 */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { AtomicVolume } from 'resilient-watcher';

const [file, directory] = process.argv.slice(2);
const volume = new AtomicVolume(directory);
const seen = { files: 0, tornFiles: 0, missingFiles: 0, sets: 0, tornSets: 0, missingSets: 0 };

function isWhole(text) {
  const [, size, letter, body] = /^(\d+) (.)\n(.*)$/.exec(text) ?? [];
  return body !== undefined && body === letter.repeat(Number(size));
}

let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();

while (!isOver) {
  seen.files += 1;
  try {
    if (!isWhole(readFileSync(file, 'utf8'))) seen.tornFiles += 1;
  } catch {
    seen.missingFiles += 1;
  }
  const { revision, files } = await volume.read();
  seen.sets += 1;
  if (revision === undefined) seen.missingSets += 1;
  else {
    const texts = [...files.values()].map(String);
    if (texts.length !== 3 || new Set(texts).size !== 1 || !isWhole(texts[0])) seen.tornSets += 1;
  }
  // The writers need the processor too.
  await setTimeout(1);
}
process.stdout.write(JSON.stringify(seen));
