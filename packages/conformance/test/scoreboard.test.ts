/** No cell of the scoreboard was filled by hand. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { root, textOf } from '../../../test/docs/markdown.js';

interface Run {
  readonly list: readonly unknown[];
  readonly results: readonly {
    readonly name: string;
    readonly sequences: readonly { readonly verdict: string }[];
  }[];
}

interface Renderer {
  readonly page: (run: Run) => string;
  readonly picture: (run: Run, isNarrow?: boolean) => string;
}

const run = JSON.parse(readFileSync(join(root, 'packages/conformance/scoreboard.json'), 'utf8')) as Run;
const renderer = (await import(join(root, 'packages/conformance/scoreboard-page.mjs'))) as Renderer;

test('the page and the pictures are those of the recorded run', () => {
  expect(textOf('packages/conformance/docs/scoreboard.md')).toBe(renderer.page(run));
  expect(textOf('packages/conformance/docs/scoreboard.svg')).toBe(renderer.picture(run));
  expect(textOf('packages/conformance/docs/scoreboard-narrow.svg')).toBe(renderer.picture(run, true));
});

test('README counts the sequences and the other watchers', () => {
  const others = new Set(run.results.map(({ name }) => name)).size - 2;
  expect(textOf('README.md').replace(/\s+/g, ' ')).toContain(
    `this library and ${others} other watchers, in six languages, handle ${run.list.length} sequences`,
  );
});

test('in it, this library and the reference reader got all right', () => {
  const perfect = run.results.filter(({ name }) => ['resilient-watcher', 'reference reader'].includes(name));
  const wrong = perfect.flatMap(({ sequences }) =>
    sequences.filter(({ verdict }) => verdict !== 'right' && verdict !== 'skipped'),
  );
  expect([perfect.length, wrong]).toEqual([2, []]);
});
