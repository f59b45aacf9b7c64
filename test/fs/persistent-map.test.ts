import fc from 'fast-check';
import { expect, test } from 'vitest';

import { keysThatDiffer, PersistentMap } from '../../src/fs/persistent-map.js';
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

test('after any changes it holds what a map holds, in the order of the keys, every earlier one is as it was, and it knows what differs', () => {
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
    { numRuns: rounds(20, 200) },
  );
});
