import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

test('the example of atomic writes does what it says', () => {
  const example = fileURLToPath(new URL('../examples/atomic-writes.mjs', import.meta.url));
  const lines = execFileSync(process.execPath, [example], { encoding: 'utf8' }).trimEnd().split('\n');
  expect(lines.slice(0, 2)).toEqual([
    'state: {"serial":1} | written again: false',
    'neighbour: certificate 1, key 1',
  ]);
  expect(lines.slice(-3)).toEqual([
    'neighbour: certificate 2, key 2',
    'equal set, new revision: false',
    'ERR_WRITE_NO_DIRECTORY at create | readers see it: false',
  ]);
});
