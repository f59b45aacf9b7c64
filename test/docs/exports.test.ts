/** Each export of the packages is used in some code on the pages, in its docstring or in examples/. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';
import { codeBlocks, COMPILED, pages, root } from './markdown.js';

const filesOf = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end) && !file.includes('node_modules'))
    .map((file) => readFileSync(join(root, folder, file), 'utf8'));

test('each class, function and constant is shown in code', () => {
  const names = filesOf('test/package/api', '.md').flatMap((report) =>
    [...report.matchAll(/^export (?:declare )?(?:abstract )?(?:class|function|const) (\w+)/gm)].map(
      ([, name = '']) => name,
    ),
  );
  const entryPoints = packages.flatMap(({ folder, entryPoints: doors }) =>
    doors.map(({ name }) => readFileSync(join(root, folder, 'src', `${name}.ts`), 'utf8')),
  );
  expect(names.length).toBeGreaterThan(80);
  const blocks = pages.flatMap(codeBlocks).filter(({ language }) => COMPILED.has(language));
  const docstrings = packages
    .flatMap(({ folder }) => filesOf(`${folder}src`, '.ts'))
    .flatMap((text) => text.match(/^ *\* ```ts$[\s\S]*?^ *\* ```$/gm) ?? []);
  const code = [...blocks.map((block) => block.code), ...docstrings, ...filesOf('examples', '.mjs')].join(
    '\n',
  );
  const shown = new Set(code.match(/\w+/g));
  // A class that is exported as a type is shown by what returns it.
  const isType = (name: string): boolean => entryPoints.some((text) => text.includes(` type ${name}`));
  expect(names.filter((name) => !shown.has(name) && !isType(name))).toEqual([]);
});
