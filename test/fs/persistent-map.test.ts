import fc from 'fast-check';
import { nodeFileSystem } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { runSync } from '../../src/fs/effects.js';
import { keysThatDiffer, PersistentMap } from '../../src/fs/persistent-map.js';
import { sortedKeys } from '../../src/fs/sorted-keys.js';
import { changedMap } from '../../src/fs/tree-draft.js';
import { rounds } from '../support/rounds.js';

const key = fc.integer({ max: 3_000, min: 0 }).map((number) => `directory/${number}`);
const change = fc.tuple(key, fc.option(fc.integer(), { nil: undefined }));
/** All that a whole range of keys is set to, or that it is removed: more than a leaf holds. */
const range = fc
  .tuple(fc.nat(2_000), fc.nat(1_000), fc.option(fc.integer(), { nil: undefined }))
  .map(([from, length, value]) =>
    Array.from({ length }, (_, index): [string, number | undefined] => [`directory/${from + index}`, value]),
  );
const changes = fc.oneof(
  { weight: 3, arbitrary: fc.array(change, { maxLength: 60 }) },
  { weight: 1, arbitrary: range },
);

const sorted = (entries: Iterable<[string, number]>): [string, number][] =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1));

test('after any changes it equals a Map in key order, earlier versions are unchanged, and it finds the differences', () => {
  fc.assert(
    fc.property(fc.array(changes, { maxLength: 12 }), (batches) => {
      const model = new Map<string, number>();
      let map = PersistentMap.empty<number>();
      const history = [{ map, entries: sorted(model) }];
      for (const batch of batches) {
        map = map.with(new Map(batch));
        for (const [name, value] of new Map(batch)) {
          if (value === undefined) model.delete(name);
          else model.set(name, value);
        }
        history.push({ map, entries: sorted(model) });
      }
      for (const { map: earlier, entries } of history) {
        expect(sorted(earlier)).toEqual(entries);
        expect(sorted([...earlier.keys()].map((name) => [name, earlier.get(name) ?? NaN]))).toEqual(entries);
        expect([earlier.size, [...earlier.values()].length]).toEqual([entries.length, entries.length]);
        expect([...earlier.keys()]).toEqual(sorted(earlier).map(([name]) => name));
        const differing = [...keysThatDiffer(earlier, map)].sort();
        const before = new Map(entries);
        const names = [...new Set([...before.keys(), ...model.keys()])];
        expect(differing).toEqual(
          names
            .filter((name) => before.get(name) !== model.get(name) || before.has(name) !== model.has(name))
            .sort(),
        );
        expect([...keysThatDiffer<number>(before, model)].sort()).toEqual(differing);
      }
      expect(map.with(new Map())).toBe(map);
    }),
    { numRuns: rounds(8, 200) },
  );
});

test('many changes that are made in portions, whatever their order, make the same map as at once', () => {
  const counts = fc.constantFrom(0, 1, 1_999, 2_000, 2_001, 4_000, 9_999);
  fc.assert(
    fc.property(counts, counts, fc.nat(20_000), (before, count, offset) => {
      // In another order than that of the keys, as directories list them.
      const keyAt = (index: number): string => `directory/${(index * 7_919 + offset) % 20_011}`;
      const entriesOf = (length: number, value: number | undefined): [string, number | undefined][] =>
        Array.from({ length }, (_, index) => [keyAt(index), index % 5 === 0 ? value : index]);
      const map = PersistentMap.empty<number>().with(new Map(entriesOf(before, 1)));
      const changes = new Map(entriesOf(count, undefined));
      expect(runSync(sortedKeys(changes.keys()), nodeFileSystem.sync)).toEqual([...changes.keys()].sort());
      const changed = runSync(changedMap(map, changes), nodeFileSystem.sync);
      expect([...changed]).toEqual([...map.with(changes)]);
    }),
    { numRuns: rounds(8, 200) },
  );
});
