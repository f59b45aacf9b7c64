/** docs/architecture.md names files and folders of the sources that exist. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

import { expect, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';
import { root, textOf } from './markdown.js';

const src = join(root, 'src');
const page = textOf('docs/architecture.md');

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/'));
const files = filesOf(src);
const all = packages.flatMap(({ folder }) => filesOf(join(root, folder, 'src')));

test('every file that the page names exists', () => {
  const known = new Set([...files, ...all.map((file) => basename(file)), 'tsup.config.ts']);
  const named = [...page.matchAll(/(?<![*\w./-])\w[\w./-]*\.ts\b/g)].map(([name]) => name);
  expect(named.length).toBeGreaterThan(50);
  expect(
    named.filter((name) => !known.has(name) && !(name.startsWith('test/') && existsSync(join(root, name)))),
  ).toEqual([]);
});

test('the table of folders has every folder of src, and names files that the folder holds', () => {
  const rows = [...page.matchAll(/^\| `([\w/]+)\/` \| (.+) \|$/gm)].filter(([, folder]) => folder !== 'src');
  const absent = rows.flatMap(([, folder = '', text = '']) =>
    (text.match(/\b[a-z]+(?:-[a-z]+)+\b/g) ?? [])
      .map((word) => `${folder}/${word}.ts`)
      .filter((file) => !files.includes(file)),
  );
  expect(absent).toEqual([]);
  const folders = files.filter((file) => statSync(join(src, file)).isDirectory());
  expect(rows.map(([, folder]) => folder).sort()).toEqual(folders.sort());
});
