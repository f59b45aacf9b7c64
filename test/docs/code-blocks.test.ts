/** The code in README and docs: YAML and JSON parse. Its programs compile and run in runs.test.ts. */
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { COMPILED, codeBlocks, pages, type CodeBlock } from './markdown.js';

/** Languages that nothing here checks beyond their syntax, if that. A block without a language is refused. */
const OTHERS = new Set(['sh', 'yaml', 'json', 'text', 'python', 'go', 'java']);

const blocks = pages.flatMap(codeBlocks);
const place = ({ page, line }: CodeBlock): string => `${page}:${line}`;

test('each block names a language that is known here', () => {
  const unknown = blocks.filter(({ language }) => !COMPILED.has(language) && !OTHERS.has(language));
  expect(unknown.map(place)).toEqual([]);
});

test('each program has a comment that says what it prints, or why it is not run', () => {
  const programs = blocks.filter(({ language }) => COMPILED.has(language));
  const silent = programs.filter(({ output, notRun }) => output === undefined && notRun === undefined);
  expect(silent.map(place)).toEqual([]);
});

test.each(blocks.filter(({ language }) => language === 'json').map((block) => [place(block), block]))(
  '%s is JSON',
  (_, { code }) => expect(() => void JSON.parse(code)).not.toThrow(),
);

test.each(blocks.filter(({ language }) => language === 'yaml').map((block) => [place(block), block]))(
  '%s is YAML',
  (_, { code }) => expect(parseAllDocuments(code).flatMap(({ errors }) => errors)).toEqual([]),
);

test('no block is a drawing: its lines would be wrapped on a narrow screen', () => {
  expect(blocks.filter(({ code }) => /[│├└┌┐┘▶▼◀►]/.test(code)).map(place)).toEqual([]);
});

test('a line with a comment fits on a page of the site, where it would be wrapped within the comment', () => {
  const COLUMNS = 82; // beside the sidebar, on a screen 1,280 pixels wide
  const comments: Readonly<Record<string, RegExp>> = {
    ts: /(?<!:)\/\/ |^ *\/?\*/,
    js: /(?<!:)\/\/ |^ *\/?\*/,
  };
  const wrapped = blocks
    .filter(({ language }) => language !== 'text') // scrolls
    .flatMap((block) =>
      block.code.split('\n').flatMap((line, index) => {
        const comment = comments[block.language] ?? /(?:^| )# /;
        const isLong = line.length > COLUMNS && comment.test(line);
        return isLong ? [`${block.page}:${block.line + index}: ${line}`] : [];
      }),
    );
  expect(wrapped).toEqual([]);
});

test('what answers with metrics says their content type, without which Prometheus refuses them', () => {
  const answering = blocks.filter(({ code }) => code.includes('.metrics()'));
  expect(answering).not.toEqual([]);
  expect(answering.filter(({ code }) => !code.includes('.contentType')).map(place)).toEqual([]);
});
