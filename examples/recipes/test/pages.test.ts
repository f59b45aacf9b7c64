/** The recipes, and the code on the pages that imports them or their clients. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { problemsOf } from '../../../test/docs/compiler.js';
import { COMPILED, codeBlocks, needsRecipes, pages } from '../../../test/docs/markdown.js';
import { playBlock } from '../../../test/docs/transcript.js';

const recipes = join(import.meta.dirname, '..');
const blocks = pages
  .flatMap(codeBlocks)
  .filter((block) => COMPILED.has(block.language) && needsRecipes(block));

test('no recipe has more than 40 lines', () => {
  const files = readdirSync(recipes).filter((name) => /^(?!vitest)[\w-]+\.ts$/.test(name));
  const lengths = files.map(
    (name) => [name, readFileSync(join(recipes, name), 'utf8').trimEnd().split('\n').length] as const,
  );
  expect(lengths.filter(([, length]) => length > 40)).toEqual([]);
});

test('the blocks of the pages compile', () => {
  expect(blocks).not.toEqual([]);
  expect(problemsOf(blocks, recipes, [join(recipes, 'not-installed.d.ts')])).toEqual([]);
});

test.each(
  blocks
    .filter(({ output }) => output !== undefined)
    .map((block) => [`${block.page}:${block.line}`, block] as const),
)('%s', (_, block) => playBlock(block, join(recipes, 'node_modules')));
