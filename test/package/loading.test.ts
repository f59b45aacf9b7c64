/** What `import` of the entry points loads before anything is used: most of its time is compiling. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

import { EventEmitter } from 'eventemitter3';
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
  ['index', 413, 3],
  ['config', 517, 4],
  ['kubernetes', 472, 5],
  ['tls', 484, 6],
] as const;

test.each(BUDGETS)('%s loads code within its budget, and two packages', (name, budget, count) => {
  const { files, packages } = loadedBy(new URL(`${name}.js`, dist));
  const kib = [...files.values()].reduce((sum, length) => sum + length, 0) / 1024;
  console.log(`${name}: ${kib.toFixed(1)} KiB in ${files.size} files`);
  expect([...packages].sort()).toEqual(['eventemitter3', 'p-retry']);
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
    // An `import` of node:buffer, node:fs or node:util would load these (src/core/ports/builtins.ts).
    ...['internal/file', 'internal/fs/streams', 'internal/mime', 'internal/util/parse_args/parse_args'],
  ];
  expect(loaded).toContain('diagnostics_channel');
  expect(heavy.filter((name) => loaded.includes(name))).toEqual([]);
});

test('the build is what src says: no package is part of it, so an override or a fix of an audit has an effect', async () => {
  const { ResilientWatcher } = (await import(new URL('index.js', dist).href)) as {
    ResilientWatcher: new (path: string) => unknown;
  };
  expect(new ResilientWatcher('/no/such/file')).toBeInstanceOf(EventEmitter);
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.js'),
  );
  const code = files.map((file) => readFileSync(new URL(file, dist), 'utf8')).join('');
  expect(code).not.toContain('node_modules');
});

test('a stack leads to code that can be read, below the name of its file in src', () => {
  const program = `const { ResilientWatcher } = await import(${JSON.stringify(new URL('index.js', dist).href)});
    try { new ResilientWatcher('/x', { notAnOption: 1 }); } catch (error) { console.log(error.stack); }`;
  const stack = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  const frames = [...stack.matchAll(/at (?:new )?(\w+) \((file:\S+):(\d+):\d+\)/g)];
  expect(frames.length).toBeGreaterThan(1);
  for (const [, name = '', url = '', line = ''] of frames) {
    const lines = readFileSync(new URL(url), 'utf8').split('\n').slice(0, Number(line));
    const isNamed = new RegExp(`(function|class) \\*?${name}\\b|constructor\\(`);
    const head = lines.findLastIndex((text) => text.startsWith('// src/'));
    expect(head).toBeGreaterThan(0);
    expect(lines.slice(head).some((text) => isNamed.test(text))).toBe(true);
  }
});
