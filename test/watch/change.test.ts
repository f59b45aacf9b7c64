import { SetSnapshot, type Change, type FileState } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { mergeChanges } from '../../src/watch/change.js';
import { MissingSnapshot } from '../../src/fs/snapshot.js';

/** Files by key; each records when its digest is read. */
class Files {
  readonly asked: string[] = [];

  file(key: string, text: string): FileState {
    const { asked } = this;
    return {
      content: Buffer.from(text),
      size: text.length,
      mode: 0o644,
      get digest() {
        asked.push(key);
        return text;
      },
    };
  }

  tree(texts: Record<string, string>): SetSnapshot {
    const files = new Map(Object.entries(texts).map(([key, text]) => [key, this.file(key, text)]));
    return new SetSnapshot({ kind: 'tree', path: '/t', realPath: '/t', revision: undefined, files });
  }
}

const change = (
  previous: Change['previous'],
  current: Change['current'],
  keys: Partial<Pick<Change, 'added' | 'changed' | 'removed'>>,
): Change => ({ previous, current, cause: 'fs', added: [], changed: [], removed: [], ...keys });

test('two changes merge into the differences between the first and the last state, without computing other digests', () => {
  const files = new Files();
  const one = files.tree({ a: '1', b: '1', c: '1', d: '1' });
  const two = files.tree({ a: '2', b: '2', c: '1', e: '1', f: '1' });
  const three = files.tree({ a: '1', b: '3', c: '1', d: '2', e: '1' });
  const merged = mergeChanges(
    change(one, two, { added: ['e', 'f'], changed: ['a', 'b'], removed: ['d'] }),
    change(two, three, { added: ['d'], changed: ['a', 'b'], removed: ['f'] }),
  );
  expect(files.asked).not.toContain('c');
  expect(merged).toMatchObject({ added: ['e'], changed: ['b', 'd'], removed: [] });
  expect([merged?.previous === one, merged?.current === three]).toEqual([true, true]);
});

test('two changes that cancel out are no change, but a different kind is one', () => {
  const files = new Files();
  const before = files.tree({ a: '1', b: '1' });
  const between = files.tree({ a: '2', b: '1' });
  const back = change(between, files.tree({ a: '1', b: '1' }), { changed: ['a'] });
  expect(mergeChanges(change(before, between, { changed: ['a'] }), back)).toBeUndefined();
  expect(files.asked).not.toContain('b');
  const missing = new MissingSnapshot('/t');
  const empty = files.tree({});
  const emptied = change(between, empty, { removed: ['a', 'b'] });
  const merged = mergeChanges(change(missing, between, { added: ['a', 'b'] }), emptied);
  expect([merged?.previous === missing, merged?.current === empty]).toEqual([true, true]);
});
