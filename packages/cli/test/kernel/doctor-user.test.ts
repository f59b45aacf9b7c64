/** `doctor` as a user that may not read the file. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Diagnosis } from '@resilient-watcher/cli/doctor';
import { expect, test, type TestContext } from 'vitest';

import { runCli } from '../../../../test/support/program.js';
import { skip } from '../../../../test/support/namespace.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

/** What it finds as another user, after these commands in a mount namespace if there are any. */
async function doctorAsNobody(
  context: TestContext,
  path: string,
  { mounts = '', env = {} }: { mounts?: string; env?: Record<string, string> } = {},
): Promise<{ code: unknown; findings: Diagnosis['findings'] }> {
  if (process.getuid?.() !== 0) skip(context, 'only root can become another user');
  const inNamespace = ['unshare', '-m', 'sh', '-c', `${mounts} && exec "$0" "$@"`];
  const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  const prefix = [...(mounts === '' ? [] : inNamespace), ...asNobody];
  const probe = await runCli(['--version'], { prefix });
  if (probe.code !== 0) skip(context, 'the other user may not read the program, or nothing can be mounted');
  const { code, stdout } = await runCli(['doctor', path, '--json'], { prefix, env });
  return { code, findings: (JSON.parse(stdout) as Diagnosis).findings };
}

test('a file that this user may not read is named with the uid and the fix', async (context) => {
  const directory = temporaryDirectory();
  chmodSync(directory, 0o755);
  const file = join(directory, 'secret');
  writeFileSync(file, 'x', { mode: 0o600 });
  const { code, findings } = await doctorAsNobody(context, file);
  expect(code).toBe(3);
  expect(findings).toMatchObject([
    {
      id: 'UNREADABLE',
      message: expect.stringContaining('uid 65534') as string,
      fix: expect.stringContaining('fsGroup') as string,
    },
  ]);
});

test('the advice for a secret that this user may not read is that of Compose, or in a pod of Kubernetes', async (context) => {
  const mounts =
    'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/secrets && install -m 600 /dev/null /run/secrets/db';
  for (const [path, env, fix] of [
    ['/run/secrets/db', {}, 'Compose ignores'],
    ['/run/secrets', {}, 'Compose ignores'],
    ['/run/secrets/db', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'fsGroup'],
  ] as const) {
    const { code, findings } = await doctorAsNobody(context, path, { mounts, env });
    expect(code).toBe(3);
    expect(findings).toMatchObject([{ id: 'UNREADABLE', fix: expect.stringContaining(fix) as string }]);
  }
});
