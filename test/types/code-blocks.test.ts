/** The TypeScript and JavaScript in README and docs compiles. */
import { join } from 'node:path';

import ts from 'typescript';
import { expect, test } from 'vitest';

import { COMPILED, codeBlocks, pages, root, type CodeBlock } from '../docs/markdown.js';

const blocks = pages.flatMap(codeBlocks).filter(({ language }) => COMPILED.has(language));
const wrong = [
  `import { ResilientWatchr } from 'resilient-watcher';\nResilientWatchr();`,
  `import { ResilientWatcher } from 'resilient-watcher';\n\nnew ResilientWatcher(42);`,
  `new ResilientWatcher('/etc/app');`,
].map((code) => ({ page: 'wrong.md', language: 'ts', output: undefined, notRun: undefined, code, line: 7 }));
// One program for all, since most of the time is spent on what they import.
const problems = problemsOf([...blocks, ...wrong]);
const isWrong = (problem: string): boolean => problem.startsWith('wrong.md');

test('accepts each block of TypeScript or JavaScript as it is on the page', () => {
  expect(problems.filter((problem) => !isWrong(problem))).toEqual([]);
});

test('finds a wrong name, a wrong type and a missing import', () => {
  const places = problems.filter(isWrong).map((problem) => problem.split(' ')[0]);
  expect(places).toEqual(['wrong.md:7:', 'wrong.md:9:', 'wrong.md:7:']);
});

/** What the compiler says of the blocks, at the lines of their pages. Each block is a module of its own. */
function problemsOf(checked: readonly CodeBlock[]): string[] {
  const options: ts.CompilerOptions = {
    ...ts.parseJsonConfigFileContent(
      ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)).config,
      ts.sys,
      root,
    ).options,
    // As strict as most users are, not as strict as this repository.
    noPropertyAccessFromIndexSignature: false,
    noUncheckedIndexedAccess: false,
    exactOptionalPropertyTypes: false,
    experimentalDecorators: true, // for NestJS
    allowImportingTsExtensions: true,
    noEmit: true,
  };
  const files = new Map(
    checked.map((block, index) => [
      // Beside the recipes, which some blocks import.
      join(root, `examples/recipes/block-${index}.ts`),
      { block, text: `${block.code}\nexport {};\n` },
    ]),
  );
  const host = ts.createCompilerHost(options);
  // A fifth of the time, for comments that no diagnostic here is about.
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone;
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path)?.text ?? readFile(path);
  host.getSourceFile = (path, target, ...rest) => {
    const file = files.get(path);
    return file ? ts.createSourceFile(path, file.text, target) : getSourceFile(path, target, ...rest);
  };
  const program = ts.createProgram(
    [join(root, 'test/types/not-installed.d.ts'), ...files.keys()],
    options,
    host,
  );
  return [...files].flatMap(([path, { block }]) => {
    const source = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ start = 0, messageText }) => {
        const line = source?.getLineAndCharacterOfPosition(start).line ?? 0;
        return `${block.page}:${block.line + line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      },
    );
  });
}
