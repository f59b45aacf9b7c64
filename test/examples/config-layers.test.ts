import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('the table says which layer each value comes from, also after an update, and no secret', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const volume = new KubeletVolume(mount);
  volume.publish({ 'app.yaml': 'port: 1\ndb: {password: hunter2}\n' });
  const program = startExample('config-layers.mjs', {
    CONFIG_DIR: mount,
    NODE_ENV: 'production',
    APP_LOG__LEVEL: 'warn',
  });
  await program.until(/^log\.level +"debug" \| "info" \| "warn" +"info" +environment APP_\*$/m);
  expect(program.output).toMatch(/^port +integer +8080 +\S+\/app\.yaml +Where it listens$/m);

  volume.publish({ 'app.yaml': 'port: 1\n', 'app.production.yaml': 'port: 2\n' });
  await program.until(/^port +integer +8080 +\S+\/app\.production\.yaml/m);
  expect(program.output).toMatch(/^db\.password +string +\[redacted\] +default$/m);
  expect(program.output).not.toContain('hunter');
  expect(await program.terminated()).toBe(0);
});
