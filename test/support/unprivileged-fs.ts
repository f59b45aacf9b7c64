/** `node:fs` for a user who is not root, whoever runs the tests: the bits of the owner count. */
import nodeFs, { lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from './faulty-file-system.js';
import { interceptedFs } from './intercepted-fs.js';

const READ = 0o400;
const SEARCH = 0o100;

/** The calls that need permission to read what is at the path. */
const READING = new Set(['open', 'readdir', 'watch']);

export function unprivilegedFs(): FileSystem {
  const fs = interceptedFs(({ name, args: [path], make }) => {
    if (typeof path === 'string') assertAllowed(name, path);
    return make();
  });
  const watch: typeof nodeFs.watch = (path: unknown, ...rest: unknown[]) => {
    assertAllowed('watch', String(path));
    return (nodeFs.watch as (...args: unknown[]) => nodeFs.FSWatcher)(path, ...rest);
  };
  return new Proxy(fs, { get: (_, name): unknown => (name === 'watch' ? watch : Reflect.get(fs, name)) });
}

function assertAllowed(call: string, path: string): void {
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    const stat = statSync(above, { throwIfNoEntry: false });
    if (stat && (stat.mode & SEARCH) === 0) throw errno('EACCES', path);
  }
  const stat = READING.has(call) ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
  if (stat && (stat.mode & READ) === 0) throw errno('EACCES', path);
}
