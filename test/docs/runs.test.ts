/** Each block of TypeScript or JavaScript on the pages compiles, runs, and prints what the comment above it says. */
import { expect, test } from 'vitest';

import { problemsOf } from './compiler.js';
import { inlineExpressions } from './inline-expressions.js';
import { COMPILED, codeBlocks, needsRecipes, pages, type CodeBlock } from './markdown.js';
import { playBlock, playSilentBlocks, stepsOf } from './transcript.js';

const blocks = pages
  .flatMap(codeBlocks)
  .filter((block) => COMPILED.has(block.language) && !needsRecipes(block));
const place = ({ page, line }: CodeBlock): string => `${page}:${line}`;
const runs = blocks.filter(({ output }) => output !== undefined);

const wrong = [
  `import { ResilientWatchr } from 'resilient-watcher';\nResilientWatchr();`,
  `import { ResilientWatcher } from 'resilient-watcher';\n\nnew ResilientWatcher(42);`,
  `new ResilientWatcher('/etc/app');`,
].map((code) => ({ page: 'wrong.md', language: 'ts', output: undefined, notRun: undefined, code, line: 7 }));
const inlines = [
  '| others | here |',
  '|---|---|',
  "| `config.get('db.host')` | `loader.current.db.host`, and `loader.current?.db.host` |",
  '| | `...nodeEnvFiles(42)`; `nodeEnvFiles()` and `nodeEnvFiles(…)` are names |',
].join('\n');
// One program for all, since most of the time is spent on what they import.
const problems = problemsOf([
  ...blocks,
  ...pages.flatMap((page) => inlineExpressions(page)),
  ...wrong,
  ...inlineExpressions('wrong.md', inlines),
]);
const isWrong = (problem: string): boolean => problem.startsWith('wrong.md');

test('each block and each expression of inline code compiles as it is on the page', () => {
  expect(problems.filter((problem) => !isWrong(problem))).toEqual([]);
});

test('the compiler finds a wrong name, a wrong type and a missing import', () => {
  const places = problems.filter(isWrong).map((problem) => problem.split(' ')[0]);
  expect(places.slice(0, 3)).toEqual(['wrong.md:7:', 'wrong.md:9:', 'wrong.md:7:']);
});

test('the compiler finds a value that may be undefined and a wrong argument in inline code', () => {
  expect(problems.filter(isWrong).slice(3)).toEqual([
    "wrong.md:3: 'loader.current' is possibly 'undefined'.",
    expect.stringMatching(/^wrong\.md:4: .*'number' is not assignable/),
  ]);
});

/** What prints nothing shares a process, unless it logs what the others do. */
const isSilent = (block: CodeBlock): boolean => stepsOf(block).length === 0 && !block.code.includes('logTo(');

test('blocks that print nothing run in one process, which ends by itself', () =>
  playSilentBlocks(runs.filter(isSilent)));

test.each(runs.filter((block) => !isSilent(block)).map((block) => [place(block), block] as const))(
  '%s',
  (_, block) => playBlock(block),
);
