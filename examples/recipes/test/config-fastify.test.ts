import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../../../test/support/program.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

test('the log level and the rate limit of a running Fastify server follow the ConfigMap', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const volume = new KubeletVolume(mount);
  const publish = (text: string): unknown => volume.publish({ 'app.yaml': text });
  publish('log: { level: info }\nrate_limit: { max: 1000 }\n');
  const program = startExample('recipes/config-fastify.mjs', {
    CONFIG_DIR: mount,
    PORT: '0',
    APP_RATE_LIMIT__WINDOW_MS: '3600000',
  });
  const [, url = ''] = await program.until(/listening at (http:\/\/[\d.:]+)/);
  const ask = (): Promise<Response> => fetch(`${url}/`);
  const limit = async (): Promise<unknown> => (await ask()).headers.get('x-ratelimit-limit');

  expect(await limit()).toBe('1000');
  expect(program.output).not.toContain('somebody asked');

  publish('log: { level: debug }\nrate_limit: { max: 500 }\n');
  await expect.poll(limit).toBe('500');
  await ask();
  await program.until(/somebody asked/);

  publish('log: { level: loud }\nrate_limit: { max: 1 }\n');
  await program.until(/rejected/);
  expect(program.output).not.toContain('loud');
  expect(await limit()).toBe('500');

  publish('log: { level: debug }\nrate_limit: { max: 1 }\n');
  await expect.poll(async () => (await ask()).status).toBe(429);

  publish('rate_limit: { max: 2000 }\n');
  await expect.poll(limit).toBe('2000');
  await ask();
  expect(await program.terminated()).toBe(0);
  const last = program.output.slice(program.output.lastIndexOf('incoming request'));
  expect(last).toContain('request completed');
  expect(last).not.toContain('somebody asked');
});
