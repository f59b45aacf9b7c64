import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test('a swap, and a configuration that is broken and mended, show in /metrics, /readyz and the log', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const volume = new KubeletVolume(mount);
  const publish = (app: string, policy: string): unknown =>
    volume.publish({ 'app.yaml': app, 'policy.yaml': policy });
  publish('port: 1\n', 'allow: alice\n');
  const program = startExample('observability.mjs', { CONFIG_DIR: mount, PORT: '0' });
  const [, url = ''] = await program.until(/listening at (http:\/\/[\d.:]+)/);
  const statusOf = async (path: string): Promise<number> => (await fetch(`${url}${path}`)).status;
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();

  expect(await statusOf('/livez')).toBe(200);
  expect(await statusOf('/readyz')).toBe(200);
  expect(await metrics()).toContain('resilient_watcher_status{target="policy.yaml",state="watching"} 1');

  publish('port: 1\n', 'allow: [alice, bob]\n');
  await expect.poll(metrics).toMatch(/changes_total\{target="policy.yaml",cause="\w+"\} [1-9]/);
  await expect.poll(metrics).toMatch(/change_delay_seconds_count\{target="policy.yaml"\} [1-9]/);

  publish('port: [\n', 'allow: [alice, bob]\n');
  await expect.poll(metrics).toContain('config_last_reload_successful{loader="app"} 0');
  expect(await statusOf('/readyz')).toBe(503);
  expect(await statusOf('/livez')).toBe(200);
  // The log comes through a pipe, so it may come after the answer.
  await program.until(/ConfigLoader \\"app\\": update rejected/);

  publish('port: 1\n', 'allow: [alice, bob]\n');
  await expect.poll(metrics).toContain('config_last_reload_successful{loader="app"} 1');
  expect(await statusOf('/readyz')).toBe(200);
  expect(program.output).not.toMatch(/alice|bob/);

  expect(await program.terminated()).toBe(0);
});
