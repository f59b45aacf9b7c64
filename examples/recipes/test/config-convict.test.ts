import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../../../test/support/program.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

test('a convict schema judges each update: a good one takes effect, a bad one shows no values', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const volume = new KubeletVolume(mount);
  const publish = (config: unknown): unknown =>
    volume.publish({ 'app.json': typeof config === 'string' ? config : JSON.stringify(config) });
  publish({ env: 'production', db: { host: 'first.example', password: 'hunter2' } });
  const program = startExample('recipes/config-convict.mjs', { CONFIG_DIR: mount, PORT: '4711' });
  await program.until(/started on port 4711 with first\.example/);

  publish({ env: 'production', db: { host: 'second.example', password: 'hunter2' } });
  await program.until(/connecting to second\.example/);
  await program.until(/changed db\.host\n/);

  publish({ env: 'hunter3', db: { host: 'third.example', password: 12345678 } });
  await program.until(/rejected/);
  publish({ db: { hots: 'fourth.example' } });
  await program.until(/rejected validate: unknown: db\.hots/);
  publish('{ "db": ');
  await program.until(/app\.json:1:/);
  expect(program.output).not.toMatch(/hunter|12345678|third/);

  publish({ env: 'production', db: { host: 'fifth.example', password: 'hunter2' } });
  await program.until(/connecting to fifth\.example/);
  expect(await program.terminated()).toBe(0);
});
