import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

/** A directory of its own for the running test, gone when the test is. */
export function temporaryDirectory(root = tmpdir()): string {
  const directory = realpathSync(mkdtempSync(join(root, 'resilient-watcher-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}
