import {
  mkdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  chmodSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';

import { TreeScope } from '../../src/fs/tree-scope.js';
import { PersistentMap } from '../../src/fs/persistent-map.js';
import { nodeFileSystem } from '../../src/core/file-system.js';
import { runAsync, runSync, type Effects } from '../../src/fs/effects.js';
import type { TreeObservation, TreeWalk } from '../../src/fs/tree-part.js';
import { rewalkTree, walkDirectories, walkTree } from '../../src/fs/tree-walk.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const options = (
  given: { ignore?: string[]; followLinks?: boolean } = {},
): Parameters<typeof walkTree>[1] => {
  const { ignore = [], followLinks = false } = given;
  return { scope: TreeScope.without(ignore), followLinks };
};

const now = <T>(steps: Effects<T>): T => runSync(steps, nodeFileSystem.sync);

function asTree(seen: TreeObservation): TreeWalk {
  if (seen.kind !== 'tree') throw new Error(`It is ${seen.kind}`);
  return seen;
}

const walk = (root: string, given: Parameters<typeof options>[0] = {}): TreeWalk =>
  asTree(now(walkTree(root, options(given))));

/** What a walk has found, in an order that does not depend on how it was found. */
function asFound({ root, mounts, own, linked, files, directories, unreadable }: TreeWalk): unknown {
  const parts: ReadonlyMap<string, unknown>[] = [
    // When each directory was last listed depends on that.
    ...Object.values({ ...own, listed: new Map<string, unknown>() }),
    ...Object.values({ ...linked }),
  ];
  const maps = [mounts, files, directories, unreadable, ...parts];
  return [root, ...maps.map((map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1)))];
}

const keys = (map: ReadonlyMap<string, unknown>): string[] => [...map.keys()].sort();

/** Files by path (their text is the path), `name/` for a directory, `name -> target` for a link. */
function plant(...entries: string[]): string {
  const root = temporaryDirectory();
  for (const entry of entries) {
    const [name = '', target] = entry.split(' -> ');
    const path = join(root, name);
    mkdirSync(name.endsWith('/') ? path : join(path, '..'), { recursive: true });
    if (target !== undefined) symlinkSync(target, path);
    else if (!name.endsWith('/')) writeFileSync(path, name);
  }
  return root;
}

test.each<
  [
    string,
    { entries: string[]; ignore?: string[]; followLinks?: boolean; files: string[]; directories: string[] },
  ]
>([
  [
    'files at any depth',
    {
      entries: ['a', 'b/c', 'b/d/e', 'f/'],
      files: ['a', 'b/c', 'b/d/e'],
      directories: ['', 'b', 'b/d', 'f'],
    },
  ],
  [
    'names that begin with dots',
    { entries: ['.a', '..b/c'], files: ['..b/c', '.a'], directories: ['', '..b'] },
  ],
  [
    'the keys of a volume, not what only the volume sees',
    {
      entries: [
        'v/..r/k',
        'v/..r/d/e',
        'v/..data -> ..r',
        'v/k -> ..data/k',
        'v/d -> ..data/d',
        'v/..x',
        'w/..x',
      ],
      files: ['v/d/e', 'v/k', 'w/..x'],
      directories: ['', 'v', 'v/d', 'w'],
    },
  ],
  [
    'a link to a file, not one that leads nowhere or to itself',
    { entries: ['a', 'b -> a', 'c -> missing', 'd -> d'], files: ['a', 'b'], directories: [''] },
  ],
  ['no directory behind a link', { entries: ['a/b', 'c -> a'], files: ['a/b'], directories: ['', 'a'] }],
  [
    'nothing that a glob matches, nor what is below it',
    {
      entries: ['a.tmp', 'b/a.tmp', 'b/c', 'node_modules/d/e', 'b/node_modules/f', 'dist/g', 'b/dist/h'],
      ignore: ['**/*.tmp', '**/node_modules', 'dist'],
      files: ['b/c', 'b/dist/h'],
      directories: ['', 'b', 'b/dist'],
    },
  ],
  [
    'a directory behind a link once and under its own path, however many links lead there',
    {
      entries: ['a/b', 'c -> a', 'a/up -> ..', 'd/e -> ../d'],
      followLinks: true,
      files: ['a/b'],
      directories: ['', 'a', 'd'],
    },
  ],
  [
    'a directory that only a link leads to, under the link',
    {
      entries: [
        '.store/x/file',
        '.store/x/self -> .',
        '.store/x/y -> ../y',
        '.store/y/other',
        'b -> .store/x',
        'c -> .store/x',
      ],
      ignore: ['.store'],
      followLinks: true,
      files: ['b/file', 'b/y/other'],
      directories: ['', 'b', 'b/y'],
    },
  ],
])('a walk finds %s', async (_, { entries, files, directories, ...given }) => {
  const root = plant(...entries);
  const seen = walk(root, given);
  expect({ files: keys(seen.files), directories: keys(seen.directories) }).toEqual({ files, directories });
  const later = asTree(await runAsync(walkTree(root, options(given)), nodeFileSystem));
  expect(asFound(later)).toEqual(asFound(seen));
  const bare = asTree(now(walkDirectories(root, options(given))));
  expect({ files: keys(bare.files), directories: keys(bare.directories) }).toEqual({
    files: [],
    directories,
  });
});

test('it has the real path of a directory behind a link, so that it can be watched', () => {
  const root = plant('store/x/file', 'tree/b -> ../store/x');
  const { directories } = walk(join(root, 'tree'), { followLinks: true });
  expect(directories.get('b')).toMatchObject({ path: join(root, 'store/x'), linked: true });
  expect(directories.get('')).toMatchObject({ path: join(root, 'tree'), linked: false });
});

test.each<[string, (root: string) => string, unknown]>([
  ['missing', (root) => join(root, 'x'), { kind: 'missing', errno: 'ENOENT' }],
  ['a file', (root) => join(root, 'file'), { kind: 'not-directory', errno: 'ENOTDIR' }],
  ['a link', (root) => join(root, 'link'), { kind: 'not-directory', errno: 'ENOTDIR' }],
])('a root that is %s comes out as that', (_, place, expected) => {
  const root = place(plant('file', 'a/b', 'link -> a'));
  expect(now(walkTree(root, options()))).toMatchObject({ root, ...(expected as object) });
});

test('directories that cannot be listed are marked as such, including the root', () => {
  const denied = {
    ...nodeFileSystem.sync,
    scandir: (path: string) => {
      if (path.endsWith('secret')) throw Object.assign(new Error('denied'), { code: 'EACCES' });
      return nodeFileSystem.sync.scandir(path);
    },
  };
  const root = plant('a', 'secret/b');
  const seen = asTree(runSync(walkTree(root, options()), denied));
  expect([keys(seen.files), keys(seen.directories), [...seen.unreadable]]).toEqual([
    ['a'],
    [''],
    [['secret', 'EACCES']],
  ]);
  expect(runSync(walkTree(join(root, 'secret'), options()), denied)).toMatchObject({
    kind: 'unreadable',
    errno: 'EACCES',
  });
  const healed = asTree(now(rewalkTree(seen, [join(root, 'secret')], options())));
  expect([keys(healed.files), healed.unreadable.size]).toEqual([['a', 'secret/b'], 0]);
});

test('a file system that begins in the tree is entered only when it is allowedMounts', () => {
  const root = plant('a -> /proc/version');
  const first = walk(root);
  expect([...first.mounts.values()]).toContain('/proc');
  expect(now(walkTree(root, { ...options(), allowedMounts: new Map() }))).toMatchObject({
    kind: 'disallowed',
  });
  const again = asTree(now(walkTree(root, { ...options(), allowedMounts: first.mounts })));
  expect(asFound(again)).toEqual(asFound(first));
});

test('a file system that no link leads to any more is forgotten', () => {
  const root = plant('a', 'b -> /proc/version', 'c -> /proc/version');
  const before = walk(root);
  const mounts = ({ mounts: found }: TreeWalk): string[] => [...found.values()].sort();
  expect(mounts(before)).toContain('/proc');
  unlinkSync(join(root, 'b'));
  const without = asTree(now(rewalkTree(before, [join(root, 'b')], options())));
  expect(mounts(without)).toEqual(mounts(before));
  unlinkSync(join(root, 'c'));
  const after = asTree(now(rewalkTree(without, [join(root, 'c')], options())));
  expect(mounts(after)).toEqual([]);
});

test('a file system in a directory is remembered until that directory is found without it', () => {
  const root = plant('a/b/c', 'd');
  const mounted = (path: string) => {
    const stat = nodeFileSystem.sync.lstat(path);
    return path.startsWith(join(root, 'a/b')) ? Object.assign(stat, { dev: stat.dev + 1n }) : stat;
  };
  const calls = { ...nodeFileSystem.sync, lstat: mounted };
  const before = asTree(runSync(walkTree(root, options()), calls));
  expect([...before.mounts.values()]).toEqual([join(root, 'a/b')]);
  const elsewhere = asTree(runSync(rewalkTree(before, [join(root, 'd')], options()), calls));
  expect(elsewhere).toBe(before);
  const after = asTree(now(rewalkTree(before, [join(root, 'a')], options())));
  expect([...after.mounts.values()]).toEqual([]);
});

test('a repeated walk that finds nothing new returns the earlier result, and visits only what was named', () => {
  const root = plant('a/b', 'a/c', 'd/e', 'link -> a/b');
  const before = walk(root);
  expect(now(rewalkTree(before, [join(root, 'a'), join(root, 'd/e'), root, '/elsewhere'], options()))).toBe(
    before,
  );
  expect(now(rewalkTree(before, [], options()))).toBe(before);
  writeFileSync(join(root, 'a/b'), 'longer than before');
  writeFileSync(join(root, 'd/e'), 'longer than before');
  const after = asTree(now(rewalkTree(before, [join(root, 'd/e')], options())));
  expect(after.files.get('a/b')).toBe(before.files.get('a/b'));
  expect(after.files.get('d/e')?.size).toBe(18);
  expect(after.directories).toBe(before.directories);
  expect(before.files.get('d/e')?.size).toBe(3);
});

test('a repeated walk of many directories traverses the known entries once, not once per directory', () => {
  const old = Array.from({ length: 40 }, (_, number) => `d${number}/file`);
  const root = plant(...old, 'd1.x', 'd1/deeper/file');
  const before = walk(root);
  const through = vi.spyOn(PersistentMap.prototype, 'keys');
  onTestFinished(() => through.mockRestore());
  const directories = Array.from({ length: 40 }, (_, number) => [`d${number}`, `new${number}`]).flat();
  for (const directory of directories) mkdirSync(join(root, directory), { recursive: true });
  for (const file of old) unlinkSync(join(root, file));
  const steps = rewalkTree(
    before,
    directories.map((directory) => join(root, directory)),
    options(),
  );
  const after = asTree(now(steps));
  // Once for each of the maps of a walk; there are fewer of them than directories.
  expect(through.mock.calls.length).toBeLessThan(40);
  expect(asFound(after)).toEqual(asFound(walk(root)));
  expect(keys(after.files)).toEqual(['d1.x', 'd1/deeper/file']);
});

// ------------------------------------------------------------------------------------------- any script

const NAMES = ['a', 'b', 'c', '..data'];
const place = fc
  .array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('/'));

/** Something that is done; it gives the paths it touched. */
type Operation = (root: string) => string[];

/**
 * Where the kernel would say that it happened: the entry in the directory that the way there leads to. Node.js's own
 * `realpathSync` takes `..` behind a link for its parent, and never returns for some links.
 */
function entryAt(path: string): string[] {
  try {
    return [join(realpathSync.native(dirname(path)), basename(path))];
  } catch {
    return [path];
  }
}

/** And what a link there leads to, which is what is written. */
function endOf(path: string): string[] {
  try {
    return [realpathSync.native(path)];
  } catch {
    return [];
  }
}

const one =
  (act: (path: string) => void) =>
  (path: string): Operation =>
  (root) => {
    const place = join(root, path);
    const before = entryAt(place);
    act(place);
    return [...before, ...entryAt(place), ...endOf(place)];
  };
let written = 0;

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: place.map(one((path) => writeFileSync(path, 'x'.repeat((written += 1) % 1_000)))) },
  { weight: 3, arbitrary: place.map(one((path) => mkdirSync(path))) },
  place.map(one((path) => mkdirSync(path, { recursive: true }))),
  place.map(one((path) => unlinkSync(path))),
  place.map(one((path) => rmdirSync(path))),
  place.map(one((path) => rmSync(path, { recursive: true }))),
  place.map(one((path) => chmodSync(path, statSync(path).isDirectory() ? 0o755 : 0o600))),
  {
    weight: 3,
    arbitrary: fc.tuple(place, place).map(([from, to]): Operation => (root) => {
      const places = [from, to].flatMap((path) => entryAt(join(root, path)));
      renameSync(join(root, from), join(root, to));
      return [...places, ...[from, to].flatMap((path) => entryAt(join(root, path)))];
    }),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(place, fc.oneof(place, fc.constantFrom('.', '..', '../a', '../../b/c', 'a/../b')))
      .map(([path, target]) => one((link) => symlinkSync(target, link))(path)),
  },
);

const script = fc.array(fc.array(operation, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 });

test.each([{ followLinks: false }, { followLinks: true }])(
  'after any changes, a walk of the touched paths equals a complete walk, $followLinks for links',
  async ({ followLinks }) => {
    const given = { followLinks, ignore: ['**/b/a', 'c/c'] };
    const base = temporaryDirectory();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(script, async (batches) => {
        // Deep, because some links lead upwards.
        const root = join(base, String((run += 1)), 'x/y');
        mkdirSync(root, { recursive: true });
        let seen = walk(root, given);
        for (const batch of batches) {
          const touched: string[] = [];
          for (const operate of batch) {
            try {
              touched.push(...operate(root));
            } catch {
              // It cannot be done here, and nothing was.
            }
          }
          const steps = rewalkTree(seen, touched.reverse(), options(given));
          seen = asTree(await runAsync(steps, nodeFileSystem, () => true));
          const whole = walk(root, given);
          expect(asFound(seen)).toEqual(asFound(whole));
        }
      }),
      { numRuns: rounds(20, 150) },
    );
  },
);
