/** What each export needs: an entry in the reviewed API, a test, and code on the pages, in its docstring or in examples/. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';
import { codeBlocks, COMPILED, pages, root } from './markdown.js';

const filesOf = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end) && !file.includes('node_modules'))
    .map((file) => readFileSync(join(root, folder, file), 'utf8'));

interface Export {
  readonly name: string;
  readonly isType: boolean;
}

/** The exports of an entry point, as its source lists them. */
function exportsOf(source: string): Export[] {
  const statements = [...source.matchAll(/^export (type )?\{([^}]*)\}/gm)];
  return statements.flatMap(([, ofTypes, list = '']) =>
    list
      .replaceAll(/\/\/.*$/gm, '')
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
      .map((item) => ({
        name: item.replace(/^type /, '').replace(/^.* as /, ''),
        isType: ofTypes !== undefined || item.startsWith('type '),
      })),
  );
}

const entryPoints = packages.flatMap(({ folder, entryPoints: doors }) =>
  doors
    .filter(({ specifier }) => specifier !== 'resilient-watcher/internal')
    .map(({ specifier, name }) => ({
      specifier,
      report: `${folder === '' ? name : specifier.replace('@resilient-watcher/', '').replace('/', '-')}.api.md`,
      exports: exportsOf(readFileSync(join(root, folder, 'src', `${name}.ts`), 'utf8')),
    })),
);
const values = new Set(
  entryPoints.flatMap(({ exports }) => exports.filter(({ isType }) => !isType).map(({ name }) => name)),
);

describe.each(entryPoints)('$specifier', ({ report, exports }) => {
  test('each export is in the reviewed API, and nothing else is: `UPDATE_API=1 npm run test:package`', () => {
    const path = join(root, 'test/package/api', report);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const reviewed = [
      ...text.matchAll(
        /^export (?:declare )?(?:abstract )?(?:class|function|const|interface|type|enum) (\w+)/gm,
      ),
    ].map(([, name]) => name);
    expect([...new Set(reviewed)].toSorted()).toEqual(exports.map(({ name }) => name).toSorted());
  });
});

test('each class, function and constant is named in a test', () => {
  const tests = ['test', ...packages.slice(1).map(({ folder }) => `${folder}test`)]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => [...filesOf(folder, '.ts'), ...filesOf(folder, '.mjs')]);
  const named = new Set(tests.join('\n').match(/\w+/g));
  expect(values.size).toBeGreaterThan(80);
  expect([...values].filter((name) => !named.has(name))).toEqual([]);
});

test('each class, function and constant is shown in code', () => {
  const blocks = pages.flatMap(codeBlocks).filter(({ language }) => COMPILED.has(language));
  const docstrings = packages
    .flatMap(({ folder }) => filesOf(`${folder}src`, '.ts'))
    .flatMap((text) => text.match(/^ *\* ```ts$[\s\S]*?^ *\* ```$/gm) ?? []);
  const code = [...blocks.map((block) => block.code), ...docstrings, ...filesOf('examples', '.mjs')];
  const shown = new Set(code.join('\n').match(/\w+/g));
  expect([...values].filter((name) => !shown.has(name))).toEqual([]);
});
