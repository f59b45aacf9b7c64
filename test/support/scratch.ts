import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

/** A directory that is deleted when the test ends. */
export function scratch(root = tmpdir()): string {
  const directory = mkdtempSync(join(root, 'resilient-watcher-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** What is left over: all entries but these. */
export function debris(directory: string, ...expected: string[]): string[] {
  return readdirSync(directory).filter((name) => !expected.includes(name));
}
