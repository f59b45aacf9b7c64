/** The code in README and docs is correct: TypeScript compiles, marked blocks run, YAML and JSON parse. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { codeBlocks, pages, root, type CodeBlock } from './markdown.js';

const CHECKED = new Set(['ts', 'js']);
/** Languages that nothing here checks beyond their syntax, if that. A block without a language is refused. */
const OTHERS = new Set(['sh', 'yaml', 'json', 'text']);

const blocks = pages.flatMap(codeBlocks);
const place = ({ page, line }: CodeBlock): string => `${page}:${line}`;

test('each block names a language that is known here', () => {
  const unknown = blocks.filter(({ language }) => !CHECKED.has(language) && !OTHERS.has(language));
  expect(unknown.map(place)).toEqual([]);
});

describe('the compiler', () => {
  const wrong = [
    `import { ResilientWatchr } from 'resilient-watcher';\nResilientWatchr();`,
    `import { ResilientWatcher } from 'resilient-watcher';\n\nnew ResilientWatcher(42);`,
    `new ResilientWatcher('/etc/app');`,
  ].map((code) => ({ page: 'wrong.md', language: 'ts', given: '', output: undefined, code, line: 7 }));
  // One program for all, since most of the time is spent on what they import.
  const problems = problemsOf([...blocks.filter(({ language }) => CHECKED.has(language)), ...wrong]);
  const isWrong = (problem: string): boolean => problem.startsWith('wrong.md');

  test('accepts each block of TypeScript or JavaScript, with the names that its "given" comment declares', () => {
    expect(problems.filter((problem) => !isWrong(problem))).toEqual([]);
  });

  test('finds a wrong name, a wrong type and a missing import', () => {
    const places = problems.filter(isWrong).map((problem) => problem.split(' ')[0]);
    expect(places).toEqual(['wrong.md:7:', 'wrong.md:9:', 'wrong.md:7:']);
  });
});

test.each(blocks.filter(({ language }) => language === 'json').map((block) => [place(block), block]))(
  '%s is JSON',
  (_, { code }) => expect(() => void JSON.parse(code)).not.toThrow(),
);

test.each(blocks.filter(({ language }) => language === 'yaml').map((block) => [place(block), block]))(
  '%s is YAML',
  (_, { code }) => expect(parseAllDocuments(code).flatMap(({ errors }) => errors)).toEqual([]),
);

describe('blocks that are marked to run', () => {
  const runnable = blocks.filter(({ output }) => output !== undefined);

  test('exist, the first one of README among them', () => {
    expect(runnable.map(({ page }) => page)).toContain('README.md');
  });

  test.each(runnable.map((block) => [place(block), block] as const))(
    '%s prints what the page says, in an empty folder with the built package',
    async (_, { code, output }) => {
      const folder = temporaryDirectory();
      mkdirSync(join(folder, 'node_modules'));
      symlinkSync(root, join(folder, 'node_modules/resilient-watcher'));
      const compiled = ts.transpileModule(code, {
        compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
      });
      writeFileSync(join(folder, 'block.mjs'), compiled.outputText);
      const { stdout } = await promisify(execFile)(process.execPath, ['block.mjs'], { cwd: folder });
      expect(stdout.trim()).toBe(output);
    },
  );
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
  };
  const files = new Map(
    checked.map((block, index) => [
      join(root, `test/docs/block-${index}.ts`),
      { block, text: moduleOf(block) },
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
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files].flatMap(([path, { block }]) => {
    const source = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ start = 0, messageText }) => {
        const line = (source?.getLineAndCharacterOfPosition(start).line ?? 0) - linesOf(block.given);
        return `${block.page}:${block.line + line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      },
    );
  });
}

function moduleOf({ given, code }: CodeBlock): string {
  return `${given === '' ? '' : `${given}\n`}${code}\nexport {};\n`;
}

function linesOf(given: string): number {
  return given === '' ? 0 : given.split('\n').length;
}
