/**
 * Swaps a volume between revisions that are there already, some thousand times a second; the last one is LAST.
 *
 *     node flip.mjs DIRECTORY '{"swap":"rename"}' FIRST LAST KEY...
 *
 * Prints how many swaps a second that were.
 */
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { seal } from './sealed.mjs';

/** Reading a volume takes 200 µs: more often, and nobody would ever see it stand still. */
const PERIOD_NS = 250_000n;
const REVISIONS = 20;

const [directory, options, first, last, ...keys] = process.argv.slice(2);
const { swap } = JSON.parse(options);
const revisionOf = (number) => {
  const kept = Number(last) - ((Number(last) - number) % REVISIONS);
  return { kept, name: `..2026_01_01_00_00_00.${kept}` };
};

for (let number = Number(last); number > Number(last) - REVISIONS; number -= 1) {
  const { kept, name } = revisionOf(number);
  for (const key of keys) {
    const path = join(directory, name, key);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, seal(kept));
  }
}

const link = join(directory, '..data');
const began = process.hrtime.bigint();
let due = began;
for (let number = Number(first); number <= Number(last); number += 1) {
  while (process.hrtime.bigint() < due);
  due += PERIOD_NS;
  const { name } = revisionOf(number);
  if (swap === 'rename') {
    symlinkSync(name, `${link}_tmp`);
    renameSync(`${link}_tmp`, link);
  } else {
    unlinkSync(link);
    symlinkSync(name, link);
  }
}
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
console.log(Math.round((Number(last) - Number(first) + 1) / seconds));
