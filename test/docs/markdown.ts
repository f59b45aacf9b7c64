import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { packages, root } from '../../packages/packages.mjs';

export { root };

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string;
  readonly language: string;
  /** Whether a `<!-- run … -->` comment stands above it: what the comment says is to be printed. */
  readonly output: string | undefined;
  /** Why it is not run, from a `<!-- not run: … -->` comment. */
  readonly notRun: string | undefined;
  readonly code: string;
  /** The line of the page with the first line of code, from 1. */
  readonly line: number;
}

/** The languages of the blocks that `runs.test.ts` compiles. */
export const COMPILED: ReadonlySet<string> = new Set(['ts', 'js']);

/** The pages of the library and of the packages, in their roots and in their `docs`, as paths relative to the root. */
export const pages: readonly string[] = packages
  .flatMap(({ folder }) => [
    ...readdirSync(join(root, folder)).map((file) => `${folder}${file}`),
    ...(existsSync(join(root, folder, 'docs'))
      ? readdirSync(join(root, folder, 'docs'), { recursive: true, encoding: 'utf8' }).map(
          (file) => `${folder}docs/${file}`,
        )
      : []),
  ])
  .filter((page) => page.endsWith('.md') && page !== 'CHANGELOG.md');

export function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

/** The fenced blocks of a page, in order. */
export function codeBlocks(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  const lines = textOf(page).split('\n');
  let comments = '';
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const fence = /^( *)```(\S*)/.exec(line);
    if (fence) {
      const [, indent = '', language = ''] = fence;
      const end = lines.indexOf(`${indent}\`\`\``, at + 1);
      if (end < 0) throw new Error(`${page}:${at + 1}: this block has no end`);
      const code = lines.slice(at + 1, end).map((text) => text.slice(indent.length));
      blocks.push({
        page,
        language,
        output: comment('run', comments),
        notRun: comment('not run:', comments),
        code: code.join('\n'),
        line: at + 2,
      });
      comments = '';
      at = end;
    } else if (line.startsWith('<!--')) {
      const end = lines.findIndex((text, index) => index >= at && text.includes('-->'));
      comments += `${lines.slice(at, end + 1).join('\n')}\n`;
      at = end;
    } else if (line.trim() !== '') {
      comments = '';
    }
  }
  return blocks;
}

function comment(name: string, comments: string): string | undefined {
  return new RegExp(`<!-- ${name}(?=\\s)([\\s\\S]*?)-->`).exec(comments)?.[1]?.trim();
}

/** What a block imports, other than modules of Node.js: packages by their names, recipes as `./name.ts`. */
export function importsOf({ code }: CodeBlock): string[] {
  const imports = code.matchAll(/(?:from |import ?\(?)'(?!node:)((?:@[\w-]+\/)?[a-z][\w-]*|\.\/[\w.-]+)/g);
  return Array.from(imports, ([, name = '']) => name);
}

const installed = new Set(
  packages.flatMap(({ manifest }) => [
    manifest.name,
    ...Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }),
  ]),
);

/** Whether a block imports a recipe, or a package that only the recipes install; `npm run test:recipes` has these blocks. */
export function needsRecipes(block: CodeBlock): boolean {
  return importsOf(block).some((name) => !installed.has(name));
}
