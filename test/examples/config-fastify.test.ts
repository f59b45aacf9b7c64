import { join } from 'node:path';

import { expect, test } from 'vitest';

import { startExample } from '../support/example-program.js';
import { KubeletProcess } from '../support/kubelet-process.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('the log level and the rate limit of a running Fastify server follow the ConfigMap', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const kubelet = new KubeletProcess(mount);
  const publish = (text: string): Promise<void> => kubelet.publish([{ 'app.yaml': text }]);
  await publish('log: { level: info }\nrate_limit: { max: 1000 }\n');
  const { child, output, ended } = startExample('config-fastify.mjs', {
    CONFIG_DIR: mount,
    PORT: '0',
    APP_RATE_LIMIT__WINDOW_MS: '3600000',
  });
  await expect.poll(output).toMatch(/listening at http[^"]+/);
  const [url = ''] = /http:\/\/[\d.:]+/.exec(output()) ?? [];
  const ask = (): Promise<Response> => fetch(`${url}/`);
  const limit = async (): Promise<unknown> => (await ask()).headers.get('x-ratelimit-limit');

  expect(await limit()).toBe('1000');
  expect(output()).not.toContain('somebody asked');

  await publish('log: { level: debug }\nrate_limit: { max: 500 }\n');
  await expect.poll(limit).toBe('500');
  await ask();
  await expect.poll(output).toContain('somebody asked');

  await publish('log: { level: loud }\nrate_limit: { max: 1 }\n');
  await expect.poll(output).toContain('rejected');
  expect(output()).not.toContain('loud');
  expect(await limit()).toBe('500');

  await publish('rate_limit: { max: 1 }\n');
  await expect.poll(async () => (await ask()).status).toBe(429);
  const before = output().split('somebody asked').length;
  await ask();
  expect(output().split('somebody asked')).toHaveLength(before);

  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
