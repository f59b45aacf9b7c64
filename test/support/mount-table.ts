import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { temporaryDirectory } from './temporary-directory.js';

/** A directory, and a mount table in which its file system has this type, and another one that. */
export function arrange(type: string, other = 'proc'): { directory: string; table: string } {
  const directory = temporaryDirectory();
  const table = join(temporaryDirectory(), 'mountinfo');
  const dev = statSync(directory, { bigint: true }).dev;
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  const lines = [
    `1 1 ${major}:${minor} / / rw - ${type} device rw`,
    `2 1 0:9 / /other rw - ${other} other rw`,
  ];
  writeFileSync(table, `${lines.join('\n')}\n`);
  return { directory, table };
}
