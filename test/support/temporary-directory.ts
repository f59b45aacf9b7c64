import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

/** A directory for the running test, removed when it has ended; below `TMPDIR`, which vitest.config.ts sets. */
export function temporaryDirectory(root = tmpdir()): string {
  const directory = realpathSync(mkdtempSync(join(root, 'resilient-watcher-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}
