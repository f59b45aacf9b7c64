import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** A file in a directory of its own. */
export function existing({ content = 'old', mode = 0o640 } = {}): { directory: string; path: string } {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return { directory, path };
}

/** Its permission bits, in octal. */
export const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** What it resolves or rejects with. */
export const outcome = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);
