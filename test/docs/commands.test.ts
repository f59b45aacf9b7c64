/** The commands on the pages exist, and CONTRIBUTING.md has each script of package.json. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { pages, root, textOf } from './markdown.js';

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

const all = [...pages, 'tools/README.md', '.changeset/README.md', '.github/RELEASING.md'];

describe.each(all)('%s', (page) => {
  test('runs only scripts of package.json', () => {
    const wanted = [...textOf(page).matchAll(/npm run (?!--prefix)([\w:]+)/g)].map(
      ([, script = '']) => script,
    );
    expect(wanted.filter((script) => !(script in scripts))).toEqual([]);
  });

  test('names only tools, tests and scoreboards that exist', () => {
    const files = [...textOf(page).matchAll(/node ((?:tools|test|packages)\/[\w/-]+\.mjs)/g)];
    expect(files.filter(([, file = '']) => !existsSync(join(root, file)))).toEqual([]);
  });
});

test('each script has a row in CONTRIBUTING.md, and there are at most 18', () => {
  const rows = textOf('CONTRIBUTING.md').match(/^\|.*/gm) ?? [];
  const firstCells = rows.map((row) => row.split('|')[1] ?? '');
  const said = firstCells.flatMap((cell) =>
    [...cell.matchAll(/`(?:npm (?:run )?)?([\w:]+)`/g)].map(([, name]) => name),
  );
  expect(Object.keys(scripts).filter((name) => !said.includes(name))).toEqual([]);
  expect(Object.keys(scripts).length).toBeLessThanOrEqual(18);
});
