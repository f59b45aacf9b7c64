/** docs/errors.md has each error code once, and no other. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { root, textOf } from './markdown.js';

test('each error code is documented once, with cause and cure, and no code that does not exist', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const source = files
    .filter((file) => /errors?\.ts$/.test(file))
    .map((file) => readFileSync(join(root, 'src', file), 'utf8'))
    .join('');
  const codes = new Set([...source.matchAll(/'(ERR_[A-Z_]+)'/g)].map(([, code]) => code));
  const documented = [
    ...textOf('docs/errors.md').matchAll(/^\| `(ERR_[A-Z_]+)` \| [^|]+ \| [^|]+ \|$/gm),
  ].map(([, code]) => code);
  expect(documented.sort()).toEqual([...codes].sort());
});
