/** `doctor` as a user that may not read the file. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Diagnosis } from '@resilient-watcher/cli/doctor';
import { expect, test } from 'vitest';

import { runCli } from '../../../../test/support/program.js';
import { skip } from '../../../../test/support/namespace.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

test('a file that this user may not read is named with the uid and the fix', async (context) => {
  if (process.getuid?.() !== 0) skip(context, 'only root can become another user');
  const prefix = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const probe = await runCli(['--version'], { prefix });
  if (probe.code !== 0) skip(context, 'the other user may not read the program');
  const directory = temporaryDirectory();
  chmodSync(directory, 0o755);
  const file = join(directory, 'secret');
  writeFileSync(file, 'x', { mode: 0o600 });
  const { code, stdout } = await runCli(['doctor', file, '--json'], { prefix });
  expect(code).toBe(3);
  expect((JSON.parse(stdout) as Diagnosis).findings).toMatchObject([
    {
      id: 'UNREADABLE',
      message: expect.stringContaining('uid 65534') as string,
      fix: expect.stringContaining('fsGroup') as string,
    },
  ]);
});
