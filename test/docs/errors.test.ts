/** The tables of docs/errors.md are made from the table of codes: `npx vitest run test/docs/errors -u` after a change. */
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { ERROR_CODES, type ErrorName } from '../../src/core/error-codes.js';
import { root, textOf } from './markdown.js';

const HEAD = '| code | cause | what to do |\n|---|---|---|\n';

function tableOf(names: readonly string[]): string {
  const rows = names.flatMap((name) => Object.entries(ERROR_CODES[name as ErrorName]));
  return (
    HEAD + rows.map(([code, [meaning, remedy]]) => `| \`${code}\` | ${meaning} | ${remedy} |\n`).join('')
  );
}

test('each error class has a section, with the meaning and the remedy of each of its codes', async () => {
  const documented: string[] = [];
  const page = textOf('docs/errors.md').replace(
    /^## .*?: (.+)$([^|]+)(?:^\|.*\n)+/gm,
    (section: string, classes: string, text: string) => {
      const names = [...classes.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
      documented.push(...names);
      return `${section.slice(0, section.indexOf('\n'))}${text}${tableOf(names)}`;
    },
  );
  expect(documented.sort()).toEqual(Object.keys(ERROR_CODES).sort());
  await expect(page).toMatchFileSnapshot(join(root, 'docs/errors.md'));
});
