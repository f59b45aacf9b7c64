/** The adapters of the scoreboard keep the rules of packages/conformance/docs/conformance.md that hold for an adapter which is sent. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';

import { expect, test } from 'vitest';

import { root, textOf } from '../../../test/docs/markdown.js';

interface Contestant {
  readonly name: string;
  readonly version: string;
}

const { default: contestants } = (await import(join(root, 'packages/conformance/contestants.mjs'))) as {
  readonly default: readonly Contestant[];
};

const SOURCES = ['.go', '.java', '.mjs', '.py', '.rs', '.sh'];
/** What the adapters of a language share. */
const HELPERS = ['follow', 'main', 'show'];

const folder = join(root, 'packages/conformance/contestants');
const adapters = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (file) => SOURCES.includes(extname(file)) && !HELPERS.includes(basename(file, extname(file)).toLowerCase()),
);

test('each is as short as the page asks', () => {
  const [, most] =
    /a file of at most (\d+) lines/.exec(textOf('packages/conformance/docs/conformance.md')) ?? [];
  const lines = (file: string): number =>
    readFileSync(join(folder, file), 'utf8').trimEnd().split('\n').length;
  expect(new Set(adapters.map((file) => extname(file)))).toEqual(new Set(SOURCES));
  expect(adapters.filter((file) => !(lines(file) <= Number(most)))).toEqual([]);
});

test('each has a version, except the reference reader and what comes with Java', () => {
  const unpinned = contestants.filter(({ version }) => !/^\d+\.\d+\.\d+/.test(version));
  expect([...new Set(unpinned.map(({ name }) => name))]).toEqual(['reference reader', 'WatchService']);
});
