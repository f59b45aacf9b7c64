import { join } from 'node:path';

import { expect, test } from 'vitest';

import { startExample } from '../support/example-program.js';
import { KubeletProcess } from '../support/kubelet-process.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('a convict schema judges each update: a good one takes effect, a bad one shows no values', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const kubelet = new KubeletProcess(mount);
  const publish = (config: unknown): Promise<void> =>
    kubelet.publish([{ 'app.json': typeof config === 'string' ? config : JSON.stringify(config) }]);
  await publish({ env: 'production', db: { host: 'first.example', password: 'hunter2' } });
  const { child, output, ended } = startExample('config-convict.mjs', { CONFIG_DIR: mount, PORT: '4711' });
  await expect.poll(output).toContain('started on port 4711 with first.example');

  await publish({ env: 'production', db: { host: 'second.example', password: 'hunter2' } });
  await expect.poll(output).toContain('connecting to second.example');
  await expect.poll(output).toContain('changed db.host\n');

  await publish({ env: 'hunter3', db: { host: 'third.example', password: 12345678 } });
  await expect.poll(output).toContain('rejected');
  await publish({ db: { hots: 'fourth.example' } });
  await expect.poll(output).toContain("configuration param 'db.hots' not declared in the schema");
  await publish('{ "db": ');
  await expect.poll(output).toContain('app.json:1:');
  expect(output()).not.toMatch(/hunter|12345678|third/);

  await publish({ env: 'production', db: { host: 'fifth.example', password: 'hunter2' } });
  await expect.poll(output).toContain('connecting to fifth.example');
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
