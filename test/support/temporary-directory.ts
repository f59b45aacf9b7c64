import { accessSync, constants, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

const RAM_DISK = '/dev/shm';

/**
 * Where the tests keep their files: on a RAM disk where there is one, since most of their time would be spent waiting
 * for fsync. `TEST_ROOT` names another place.
 */
const testRoot = process.env['TEST_ROOT'] ?? (isWritable(RAM_DISK) ? RAM_DISK : tmpdir());

/** A directory of its own for the running test, removed when the test has ended. */
export function temporaryDirectory(root = testRoot): string {
  const directory = realpathSync(mkdtempSync(join(root, 'resilient-watcher-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
