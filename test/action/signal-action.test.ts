import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { signalAction } from 'resilient-watcher/action';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const update = { paths: [], cause: 'fs' };
const { signal } = new AbortController();

test.each([
  [
    'a named pipe without a writer',
    (path: string) => execFileSync('mkfifo', [path]),
    /does not contain a process ID/,
  ],
  ['missing', () => undefined, /cannot be read \(ENOENT\)/],
  ['a directory', (path: string) => mkdirSync(path), /does not contain/],
  ['a file of any size', (path: string) => writeFileSync(path, Buffer.alloc(10_000_000)), /does not contain/],
  ['a process group', (path: string) => writeFileSync(path, '-1'), /does not contain/],
  ['all processes', (path: string) => writeFileSync(path, '0'), /does not contain/],
])('a PID file that is %s is a failure with a reason', async (_, make, says) => {
  const pidFile = join(temporaryDirectory(), 'pid');
  make(pidFile);
  await expect(signalAction('SIGHUP', { pidFile }).run(update, { signal })).rejects.toThrow(says);
});
