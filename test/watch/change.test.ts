import { SetSnapshot, type Change } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { mergeChanges } from '../../src/watch/change.js';
import { FileSnapshot, MissingSnapshot, type FileStamp } from '../../src/fs/snapshot.js';

function tree(texts: Record<string, string>): SetSnapshot {
  const file = (key: string, text: string): FileSnapshot =>
    new FileSnapshot({
      ...{ path: key, realPath: key, revision: undefined, mode: 0o644, stamp: {} as FileStamp },
      ...{ content: Buffer.from(text), size: text.length },
    });
  const files = new Map(Object.entries(texts).map(([key, text]) => [key, file(key, text)]));
  return new SetSnapshot({ kind: 'tree', path: '/t', realPath: '/t', revision: undefined, files });
}

const change = (
  previous: Change['previous'],
  current: Change['current'],
  keys: Partial<Pick<Change, 'added' | 'changed' | 'removed'>>,
): Change => ({ previous, current, cause: 'fs', added: [], changed: [], removed: [], ...keys });

test('two changes merge into the differences between the first and the last state', () => {
  const one = tree({ a: '1', b: '1', c: '1', d: '1' });
  const two = tree({ a: '2', b: '2', c: '1', e: '1', f: '1' });
  const three = tree({ a: '1', b: '3', c: '1', d: '2', e: '1' });
  const merged = mergeChanges(
    change(one, two, { added: ['e', 'f'], changed: ['a', 'b'], removed: ['d'] }),
    change(two, three, { added: ['d'], changed: ['a', 'b'], removed: ['f'] }),
  );
  expect(merged).toMatchObject({ added: ['e'], changed: ['b', 'd'], removed: [] });
  expect([merged?.previous === one, merged?.current === three]).toEqual([true, true]);
});

test('two changes that cancel out are no change, but a different kind is one', () => {
  const before = tree({ a: '1', b: '1' });
  const between = tree({ a: '2', b: '1' });
  const back = change(between, tree({ a: '1', b: '1' }), { changed: ['a'] });
  expect(mergeChanges(change(before, between, { changed: ['a'] }), back)).toBeUndefined();
  const missing = new MissingSnapshot('/t');
  const empty = tree({});
  const emptied = change(between, empty, { removed: ['a', 'b'] });
  const merged = mergeChanges(change(missing, between, { added: ['a', 'b'] }), emptied);
  expect([merged?.previous === missing, merged?.current === empty]).toEqual([true, true]);
});
