import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { checkBuilt } from './built-package.js';
import { temporaryDirectory } from './temporary-directory.js';

test('a package that is missing, or older than one of its sources, is not tested', () => {
  const root = temporaryDirectory();
  const write = (path: string, seconds: number): void => {
    writeFileSync(join(root, path), '');
    utimesSync(join(root, path), seconds, seconds);
  };
  for (const directory of ['src/fs', 'dist']) mkdirSync(join(root, directory), { recursive: true });
  write('src/fs/a.ts', 1_000);
  expect(() => checkBuilt(root)).toThrow('npm run pretest');
  write('dist/index.js', 2_000);
  checkBuilt(root);
  write('src/fs/b.ts', 3_000);
  expect(() => checkBuilt(root)).toThrow('src/fs/b.ts is newer than dist: `npm run pretest` first');
});
