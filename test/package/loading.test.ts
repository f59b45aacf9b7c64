/** What `import` of the entry points loads before anything is used: most of its time is compiling. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

const dist = new URL('../../dist/', import.meta.url);

/** The files that a file imports statically, itself among them, and the packages. */
function loadedBy(url: URL, files = new Map<string, number>(), packages = new Set<string>()) {
  if (files.has(url.href)) return { files, packages };
  const text = readFileSync(url, 'utf8');
  files.set(url.href, text.length);
  for (const [, specifier = ''] of text.matchAll(/^(?:import\b.*?|\} from |import )"([^"]+)";$/gm)) {
    if (specifier.startsWith('.')) loadedBy(new URL(specifier, url), files, packages);
    else if (!specifier.startsWith('node:')) packages.add(specifier);
  }
  return { files, packages };
}

/** KiB of code, and files. A change that is worth its bytes raises the budget here, in the same commit. */
const BUDGETS = [
  ['index', 350, 2],
  ['config', 425, 3],
  ['kubernetes', 405, 4],
  ['tls', 410, 6],
] as const;

test.each(BUDGETS)('%s loads code within its budget, and no other package', (name, budget, count) => {
  const { files, packages } = loadedBy(new URL(`${name}.js`, dist));
  const kib = [...files.values()].reduce((sum, length) => sum + length, 0) / 1024;
  console.log(`${name}: ${kib.toFixed(1)} KiB in ${files.size} files`);
  expect([...packages]).toEqual([]);
  expect(files.size).toBeLessThanOrEqual(count);
  expect(kib).toBeLessThan(budget);
});

/** The modules of Node.js that a new process has loaded, after it has imported this. */
function modulesAfter(specifier: string): string[] {
  const program = `await import(${JSON.stringify(specifier)}); console.log(JSON.stringify(process.moduleLoadList));`;
  const args = ['--input-type=module', '--eval', program];
  const list = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as string[];
  return list.map((name) => name.replace('NativeModule ', ''));
}

test('resilient-watcher loads nothing of Node.js that only some of its features need', () => {
  const before = new Set(modulesAfter('data:text/javascript,'));
  const loaded = modulesAfter(new URL('index.js', dist).href).filter((name) => !before.has(name));
  const heavy = [
    ...['child_process', 'crypto', 'http', 'http2', 'https', 'net', 'perf_hooks', 'stream', 'tls'],
    // An `import` of node:buffer, node:fs or node:util would load these.
    ...['internal/file', 'internal/fs/streams', 'internal/mime', 'internal/util/parse_args/parse_args'],
  ];
  expect(loaded).toContain('diagnostics_channel');
  expect(heavy.filter((name) => loaded.includes(name))).toEqual([]);
});

test('the packages that are compiled in have their licenses with them', () => {
  const code = [...loadedBy(new URL('index.js', dist)).files.keys()]
    .map((url) => readFileSync(new URL(url), 'utf8'))
    .join('');
  for (const name of ['eventemitter3', 'p-retry', 'is-network-error'])
    expect(code).toMatch(new RegExp(`/\\*! ${name}\\s+(The )?MIT License[^]*?Copyright \\(c\\)[^]*?\\*/`));
});
