/** Each example does what it says, as a user runs it: with node, on the built package. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

function linesOf(example: string): string[] {
  const path = fileURLToPath(new URL(`../../examples/${example}.mjs`, import.meta.url));
  return execFileSync(process.execPath, [path], { encoding: 'utf8' }).trimEnd().split('\n');
}

test('watch-policy', () => {
  expect(linesOf('watch-policy')).toEqual([
    'applied (start): alice',
    'applied (fs): alice, bob',
    'rejected, still: alice, bob',
    'applied (fs): bob',
    "health: { state: 'watching', changes: 4, restarts: 0 }",
  ]);
});

test('test-your-controller', () => {
  expect(linesOf('test-your-controller')).toEqual([
    'a short gap shows nothing but the new content: one, two',
    'a dead backend loses nothing: one, two, three',
    'nothing is left running: 0 timers, 0 subscriptions',
  ]);
});

test('atomic-writes', () => {
  const lines = linesOf('atomic-writes');
  expect(lines.slice(0, 2)).toEqual([
    'state: {"serial":1} | written again: false',
    'neighbour: certificate 1, key 1',
  ]);
  expect(lines.slice(-3)).toEqual([
    'neighbour: certificate 2, key 2',
    'equal set, new revision: false',
    'ERR_WRITE_NO_DIRECTORY at open-directory | readers see it: false',
  ]);
});
