/** Each block of TypeScript or JavaScript on the pages compiles, runs, and prints what the comment above it says. */
import { expect, test } from 'vitest';

import { problemsOf } from './compiler.js';
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
// One program for all, since most of the time is spent on what they import.
const problems = problemsOf([...blocks, ...wrong]);
const isWrong = (problem: string): boolean => problem.startsWith('wrong.md');

test('each block compiles as it is on the page', () => {
  expect(problems.filter((problem) => !isWrong(problem))).toEqual([]);
});

test('the compiler finds a wrong name, a wrong type and a missing import', () => {
  const places = problems.filter(isWrong).map((problem) => problem.split(' ')[0]);
  expect(places).toEqual(['wrong.md:7:', 'wrong.md:9:', 'wrong.md:7:']);
});

/** What prints nothing shares a process, unless it logs what the others do. */
const isSilent = (block: CodeBlock): boolean => stepsOf(block).length === 0 && !block.code.includes('logTo(');

test('blocks that print nothing run in one process, which ends by itself', () =>
  playSilentBlocks(runs.filter(isSilent)));

test.each(runs.filter((block) => !isSilent(block)).map((block) => [place(block), block] as const))(
  '%s',
  (_, block) => playBlock(block),
);
