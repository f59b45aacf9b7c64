/** The mount table as the kernel writes it (`proc_pid_mountinfo(5)`), against a second reader that knows nothing of the first one. */
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { linesOf, reachableMounts } from '../../src/fs/mount-table.js';

/** What the kernel writes in octal, one after another, too. */
const name = fc
  .array(fc.constantFrom('a', 'b', ' ', '\t', '\n', '\\', '#', '-', 'ü', '040'), {
    minLength: 1,
    maxLength: 5,
  })
  .map((characters) => characters.join(''));
const types = fc.constantFrom('ext4', 'tmpfs', 'nfs4', 'fuse.sshfs', 'overlay', 'autofs');
const tags = fc.subarray(['shared:1', 'master:2', 'propagate_from:3', 'unbindable']);

/** One mount, made after those before it. */
interface Step {
  /** Which of the directories so far it is mounted on, and what is below that; undefined: the directory itself. */
  readonly on: number;
  readonly below: string | undefined;
  readonly type: string;
  readonly tags: readonly string[];
  readonly isBind: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  on: fc.nat(20),
  below: fc.option(name, { nil: undefined, freq: 3 }),
  type: types,
  tags,
  isBind: fc.boolean(),
});

interface Mounted {
  readonly id: number;
  readonly parent: number;
  readonly point: string;
  readonly type: string;
}

const within = (directory: string, below: string): string => `${directory === '/' ? '' : directory}/${below}`;

const inOctal = (path: string): string =>
  Buffer.from(path, 'utf8')
    .toString('latin1')
    .replaceAll(/[ \t\n\\#]/g, (character) =>
      character === '#' ? '#' : `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
    );

/** What a lookup of each point enters: of those that are mounted there on what is entered already, the last one. */
function entered(mounts: readonly Mounted[], path: string): Mounted | undefined {
  let at = mounts[0];
  const names = path === '/' ? [] : path.slice(1).split('/');
  let place = '/';
  for (const next of ['', ...names]) {
    if (next !== '') place = within(place, next);
    for (;;) {
      const above = mounts.findLast(({ parent, point }) => parent === at?.id && point === place);
      if (!above) break;
      at = above;
    }
  }
  return at;
}

test('each mount point leads to the mount that a lookup enters there', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const mounts: Mounted[] = [{ id: 20, parent: 1, point: '/', type: 'overlay' }];
      const lines = ['20 1 0:20 / / rw - overlay none rw'];
      for (const [index, { on, below, type, tags: optional, isBind }] of steps.entries()) {
        const base = mounts[on % mounts.length]?.point ?? '/';
        const point = below === undefined ? base : within(base, below);
        // The kernel mounts on what a lookup finds.
        const id = 21 + index;
        const parent = entered(mounts, point)?.id ?? 20;
        mounts.push({ id, parent, point, type });
        const root = isBind ? inOctal('/some where') : '/';
        lines.push(
          [
            id,
            parent,
            `0:${isBind ? 20 : id}`,
            root,
            inOctal(point),
            'rw,relatime',
            ...optional,
            '-',
            type,
            'none',
            'rw',
          ].join(' '),
        );
      }
      const reached = reachableMounts(linesOf(`${lines.join('\n')}\n`));
      for (const { point } of mounts) {
        const wanted = entered(mounts, point);
        // One that covers it is at another point.
        if (wanted?.point !== point) {
          expect(reached.has(point)).toBe(false);
          continue;
        }
        expect(reached.get(point)?.id).toBe(String(wanted.id));
      }
    }),
    { numRuns: 300 },
  );
});
