/** `doctor` under the permission model of Node.js, which a process is started with. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Diagnosis } from '@resilient-watcher/cli/doctor';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { runCli } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

test('a path that the permission model of Node.js denies is named, with the flag to start with', async () => {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  const { directory } = mounted;
  const application = fileURLToPath(new URL('../../../../', import.meta.url));
  const flag = process.allowedNodeEnvironmentFlags.has('--permission')
    ? '--permission'
    : '--experimental-permission';
  const doctor = async (...paths: string[]): Promise<[code: unknown, page: Diagnosis]> => {
    const allowed = paths.map((path) => `--allow-fs-read=${path}`);
    const env = { NODE_OPTIONS: [flag, ...allowed].join(' ') };
    const { code, stdout, stderr } = await runCli(['doctor', directory, '--json'], { env });
    if (stdout === '') throw new Error(stderr);
    return [code, JSON.parse(stdout) as Diagnosis];
  };
  expect(await doctor(application)).toMatchObject([
    3,
    {
      findings: [
        {
          id: 'NODE_PERMISSION',
          message: expect.stringContaining(`"${directory}"`) as string,
          fix: expect.stringContaining('--allow-fs-read') as string,
        },
      ],
    },
  ]);
  const [code, { findings }] = await doctor(application, directory);
  expect([code, findings]).toEqual([0, []]);
});
