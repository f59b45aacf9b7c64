/** Globs: what they match, and that a hostile name costs no more than a long one. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { needs } from '../support/other-systems.js';

function write(root: string, key: string): void {
  mkdirSync(dirname(join(root, key)), { recursive: true });
  writeFileSync(join(root, key), key);
}

/** What is left of these files. */
async function keysWithout(ignore: string | RegExp, keys: readonly string[]): Promise<string[]> {
  const root = temporaryDirectory();
  for (const key of keys) write(root, key);
  const { files } = await new ResilientWatcher(root, { recursive: { ignore: [ignore] } }).snapshot();
  return [...files.keys()].sort();
}

test.each([
  ['*.tmp', ['a.tmp', '.tmp', 'b/a.tmp', 'a.tmpx'], ['a.tmpx', 'b/a.tmp']],
  ['**/*.tmp', ['a.tmp', 'b/c/a.tmp', 'b/a'], ['b/a']],
  ['b/**', ['a', 'b/c/d', 'b/e'], ['a']],
  ['**/b/**/e', ['b/e', 'a/b/c/d/e', 'b/c'], ['b/c']],
  ['a?c', ['abc', 'ac', 'a-c', 'abbc'], ['abbc', 'ac']],
  ['[a-c]*', ['a1', 'c', 'd', '-'], ['-', 'd']],
  ['[!a-c]*', ['a1', 'c', 'd', '-'], ['a1', 'c']],
  ['{a,b/c}.yaml', ['a.yaml', 'b/c.yaml', 'c.yaml'], ['c.yaml']],
  ['{a,{b,c}}.yaml', ['a.yaml', 'c.yaml', 'd.yaml'], ['d.yaml']],
  ['[]^-]', [']', '^', '-', 'a'], ['a']],
  ['\\*', ['*', 'a'], ['a']],
  ['a/**', ['a', 'b'], ['b']],
  ['./a', ['a', 'b'], ['b']],
  ['a./b', ['a./b', 'ab'], ['ab']],
  ['b//', ['a', 'b/c'], ['a']],
  ['[!S]', ['S', 'a'], ['S']],
  ['[😀-😎]', ['😀', 'a'], ['a']],
  ['\\{a', ['a', '{a'], ['a']],
  ['{a,b\\,c}', ['a', 'b', 'b,c'], ['b']],
  [/^a|^b/g, ['a', 'b', 'c'], ['c']],
  ['*-*-*.tmp', ['a-b-c.tmp', '--.tmp', 'a-b.tmp', 'a-b-c'], ['a-b-c', 'a-b.tmp']],
])('%s of %j leaves %j', async (glob, keys, left) => {
  // Windows has no such names.
  if (keys.some((key) => /[*?"<>|]/.test(key))) needs('posix');
  expect(await keysWithout(glob, keys)).toEqual(left);
});

test.each(['{a', 'a{b,', 'a[', '!a', '*(a)', '{a,b}'.repeat(10), '{{a,b}'])(
  'the glob %s is refused, because it would not match what it seems to',
  (glob) => {
    const create = (ignore: (string | RegExp)[]): unknown =>
      new ResilientWatcher('/', { recursive: { ignore } });
    for (const ignore of [[glob], ['a', glob], [glob, 'a']]) expect(() => create(ignore)).toThrow(TypeError);
  },
);

test('one pattern that is none is refused among others', () => {
  const ignore = ['a', 7 as unknown as string];
  expect(() => new ResilientWatcher('/', { recursive: { ignore } })).toThrow(TypeError);
});

test('a glob may have 1,000 alternatives', async () => {
  const digits = '{0,1,2,3,4,5,6,7,8,9}';
  expect(await keysWithout(digits.repeat(3), ['042', '42', '0420'])).toEqual(['0420', '42']);
});

test.each(['**/*-*-*-*-*.tmp', '**/?*-*-?*-*-*.tmp', '**/*[-]*[-]*[-]*[-]*x'])(
  'a name of twice the length takes %s no multiple of the time',
  async (glob) => {
    /** The least processor time for some looks at files whose names have this length, ms. */
    const timeFor = async (length: number): Promise<number> => {
      const root = temporaryDirectory();
      for (let number = 0; number < 5; number += 1) write(root, `${'-'.repeat(length - 1)}${number}`);
      const times: number[] = [];
      for (let round = 0; round < 3; round += 1) {
        const watcher = new ResilientWatcher(root, { recursive: { ignore: [glob] }, backend: 'poll' });
        onTestFinished(() => watcher.close());
        const before = process.cpuUsage();
        for (let looks = 0; looks < 3; looks += 1) await watcher.snapshot();
        const { user, system } = process.cpuUsage(before);
        times.push((user + system) / 1_000);
      }
      return Math.min(...times);
    };
    // It was the fifth power: 32 times as long. Times below a few milliseconds say nothing.
    expect(await timeFor(100)).toBeLessThan(8 * Math.max(5, await timeFor(50)));
  },
);
