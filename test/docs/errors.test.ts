/** docs/errors.md has each error code once, and no other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { root, textOf } from './markdown.js';

test('each error code is documented once, with cause and cure, and no code that does not exist', () => {
  const source = readFileSync(join(root, 'src/core/errors.ts'), 'utf8');
  const codes = new Set([...source.matchAll(/'(ERR_[A-Z_]+)'/g)].map(([, code]) => code));
  const documented = [
    ...textOf('docs/errors.md').matchAll(/^\| `(ERR_[A-Z_]+)` \| [^|]+ \| [^|]+ \|$/gm),
  ].map(([, code]) => code);
  expect(documented.sort()).toEqual([...codes].sort());
});
