/** docs/errors.md and the codes of the error classes are the same. */
import { expect, test } from 'vitest';

import { textOf } from './markdown.js';

const codesIn = (text: string): string[] => text.match(/\bERR_[A-Z_]+\b/g) ?? [];

test('each error class has a section, with a row for each of its codes', () => {
  const classes = textOf('src/core/errors/error-codes.ts').matchAll(/^ {2}(\w+Error):([^;]+);/gm);
  const codes = new Map([...classes].map(([, name = '', union = '']) => [name, codesIn(union)]));
  const sections = textOf('docs/errors.md').matchAll(/^## .*?: (.+)$[^|]+((?:^\|.*\n)+)/gm);
  const documented = [...sections].map(([, heading = '', table = '']) => {
    const names = [...heading.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
    const rows = [...table.matchAll(/^\| `(ERR_\w+)` \| .+ \| .+ \|$/gm)].map(([, code]) => code);
    expect(rows, heading).toEqual(names.flatMap((name) => codes.get(name)));
    return names;
  });
  expect(documented.flat().sort()).toEqual([...codes.keys()].sort());
});
