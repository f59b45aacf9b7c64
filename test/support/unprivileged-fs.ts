/** `node:fs` for a user who is not root, whoever runs the tests: the bits of the owner count. */
import { lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from './errno.js';
import { fsWith, type Called } from './intercepted-fs.js';

const READ = 0o400;
const SEARCH = 0o100;

/** The calls that need permission to read what is at the path. */
const READING = new Set(['open', 'readdir', 'watch']);

export function unprivilegedFs(): FileSystem {
  return fsWith({ each: assertAllowed, watch: assertAllowed });
}

function assertAllowed({ name, args: [path] }: Called): void {
  if (typeof path !== 'string') return;
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    const stat = statSync(above, { throwIfNoEntry: false });
    if (stat && (stat.mode & SEARCH) === 0) throw errno('EACCES', path);
  }
  const stat = READING.has(name) ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
  if (stat && (stat.mode & READ) === 0) throw errno('EACCES', path);
}
