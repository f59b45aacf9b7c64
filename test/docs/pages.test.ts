/**
 * The pages hold together: links lead somewhere, tables are whole. Those of README lead into the repository on the page of the
 * package, too, since a release needs `repository`.
 */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { describe, expect, test } from 'vitest';

import { pages, root, textOf } from './markdown.js';

interface Link {
  /** A path relative to the root. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** The links of a page that lead to a file of the repository or to a place on a page. */
function linksOf(page: string): Link[] {
  const text = textOf(page).replace(/^ *```[\s\S]*?^ *```$/gm, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = '', anchor] = target.split('#');
    return [{ path: path === '' ? page : normalize(join(dirname(page), path)), anchor }];
  });
}

/** The paths of files that a page names in code spans. Those of the page's package begin in its folder, or in its `src`. */
function filesNamedOn(page: string): string[] {
  const folder = /^packages\/[\w-]+\//.exec(page)?.[0] ?? '';
  const text = textOf(page).replace(/^ *```[\s\S]*?^ *```$/gm, '');
  const named = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|mts|mjs|js))`/g)].map(
    ([, path = '']) => path,
  );
  return named.filter(
    (path) => OWN.test(path) && !['', folder, 'src/'].some((place) => existsSync(join(root, place, path))),
  );
}

/** The folders that have programs. Other paths are those of a reader's project. */
const OWN =
  /^(\.ci|\.github|deploy|examples|packages|site|src|test|tools|core|fs|watch|write|token|secret|config|tls|kubernetes|telemetry|testing)\//;

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): string[] {
  return [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

describe.each(pages)('%s', (page) => {
  const links = linksOf(page);

  test('links to what exists, headings included', () => {
    const dead = links.filter(
      ({ path, anchor }) =>
        !existsSync(join(root, path)) || (anchor !== undefined && !anchorsOf(path).includes(anchor)),
    );
    expect(dead).toEqual([]);
  });

  test('names files that exist', () => {
    expect(filesNamedOn(page)).toEqual([]);
  });

  test('has no table that a blank line cuts in two', () => {
    const lines = textOf(page).split('\n');
    const headless = lines.flatMap((line, index) => {
      const isFirst = line.startsWith('|') && !lines[index - 1]?.startsWith('|');
      return isFirst && !/^\|[\s:|-]+\|$/.test(lines[index + 1] ?? '') ? [`${page}:${index + 1}`] : [];
    });
    expect(headless).toEqual([]);
  });
});
