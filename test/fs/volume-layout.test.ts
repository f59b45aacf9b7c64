import fc from 'fast-check';
import { expect, test } from 'vitest';

import { isInsideRevision, isRevisionName } from '../../src/fs/volume-layout.js';

const names = fc.constantFrom(
  '..2026_01_01_00_00_00.1',
  '..2026_01_01_00_00_00.1x',
  'x..2026_01_01_00_00_00.1',
  '..2026_01_01_00_00_00.',
  '..data',
  'key',
  'a\n',
);

test('a path leads through a revision if any of its directories has the name of one', () => {
  fc.assert(
    fc.property(fc.array(names, { minLength: 1, maxLength: 5 }), (path) => {
      const directories = path.slice(0, -1);
      expect(isInsideRevision(`/${path.join('/')}`)).toBe(directories.some(isRevisionName));
    }),
  );
});
