/** The code in README and docs: marked blocks run, YAML and JSON parse. That TypeScript compiles is shown in test/types. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { transform } from 'esbuild';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { COMPILED, codeBlocks, pages, root, type CodeBlock } from './markdown.js';

/** Languages that nothing here checks beyond their syntax, if that. A block without a language is refused. */
const OTHERS = new Set(['sh', 'yaml', 'json', 'text', 'python', 'go', 'java']);

const blocks = pages.flatMap(codeBlocks);
const place = ({ page, line }: CodeBlock): string => `${page}:${line}`;

test('each block names a language that is known here', () => {
  const unknown = blocks.filter(({ language }) => !COMPILED.has(language) && !OTHERS.has(language));
  expect(unknown.map(place)).toEqual([]);
});

test.each(blocks.filter(({ language }) => language === 'json').map((block) => [place(block), block]))(
  '%s is JSON',
  (_, { code }) => expect(() => void JSON.parse(code)).not.toThrow(),
);

test.each(blocks.filter(({ language }) => language === 'yaml').map((block) => [place(block), block]))(
  '%s is YAML',
  (_, { code }) => expect(parseAllDocuments(code).flatMap(({ errors }) => errors)).toEqual([]),
);

test('what answers with metrics says their content type, without which Prometheus refuses them', () => {
  const answering = blocks.filter(({ code }) => code.includes('.metrics()'));
  expect(answering).not.toEqual([]);
  expect(answering.filter(({ code }) => !code.includes('.contentType')).map(place)).toEqual([]);
});

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
      const compiled = await transform(code, { loader: 'ts', target: 'es2022' });
      writeFileSync(join(folder, 'block.mjs'), compiled.code);
      expect(await played(output ?? '', folder)).toBe(output);
    },
  );
});

/**
 * The transcript of a run: runs each line that begins with `$ ` as a command of the shell, as soon as the lines above it have
 * been printed. The first ones come before the program; after the last line, a program with commands is ended.
 */
async function played(transcript: string, cwd: string): Promise<string> {
  const lines = transcript.split('\n');
  const isCommand = (line = ''): boolean => line.startsWith('$ ');
  const seen: string[] = [];
  const runCommands = (): void => {
    for (; isCommand(lines[seen.length]); seen.push(lines[seen.length] ?? '')) {
      execFileSync('sh', ['-c', (lines[seen.length] ?? '').slice(2)], { cwd });
    }
  };
  runCommands();
  const { NODE_ENV: _, ...env } = process.env; // that of Vitest
  const child = spawn(process.execPath, ['block.mjs'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  for await (const line of createInterface({ input: child.stdout })) {
    const isAsExpected = line === lines[seen.length];
    seen.push(line);
    runCommands();
    if (!isAsExpected || (lines.some(isCommand) && seen.length >= lines.length)) child.kill();
  }
  return seen.join('\n').trim();
}
