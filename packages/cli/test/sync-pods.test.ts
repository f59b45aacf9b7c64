/** `sync-pods` against an API server on a real socket. */
import { expect, test } from 'vitest';

import { startMain } from './support/command-line.js';
import { clusterScene } from '../../../test/support/cluster-scene.js';
import { ANNOTATION, configMap, podOf } from '../../sync-pods/test/support/pod-sync-scene.js';

test('a pod is patched when its ConfigMap changes; the contents of the ConfigMap appear nowhere', async () => {
  const { server, kubeconfigFile } = await clusterScene();
  const { token } = await server.mint('ci', 'builder', { expirationSeconds: 24 * 3_600 });
  server.putObject('configmaps', configMap('app'));
  server.putObject('pods', podOf('web', [{ configMap: { name: 'app' } }]));
  const program = startMain([
    'sync-pods',
    '--namespace',
    'shop',
    '--json',
    '--kubeconfig',
    kubeconfigFile(token),
  ]);
  await program.until(/"event":"listed"/);
  server.putObject('configmaps', configMap('app', 'a-value-that-nobody-needs'));
  await program.until(/"event":"synced".*"namespace":"shop","pod":"web"/);
  expect(server.getObject('pods', 'shop', 'web')?.metadata.annotations?.[ANNOTATION]).toMatch(/^[\da-f]{16}/);
  expect(await program.terminated()).toBe(0);
  expect(program.stdout + program.stderr).not.toContain('a-value-that-nobody-needs');
});

test('without permission there is one line for the cause, with the number of others at the end, and one with advice', async () => {
  const { server, kubeconfigFile } = await clusterScene();
  const { token } = await server.mint('ci', 'builder', { expirationSeconds: 24 * 3_600 });
  server.putObject('configmaps', configMap('app'));
  for (let index = 0; index < 20; index += 1)
    server.putObject('pods', podOf(`web-${index}`, [{ configMap: { name: 'app' } }]));
  const flags = ['--namespace', 'shop', '--json', '--kubeconfig', kubeconfigFile(token)];
  const program = startMain(['sync-pods', ...flags]);
  await program.until(/"event":"listed"/);
  // Lists and watches are not refused.
  server.putObject('configmaps', configMap('app', 'first'));
  await program.until(/"event":"synced"/);
  const message = 'pods "web-0" is forbidden: User "ci" cannot patch resource "pods" in API group ""';
  server.otherwise = { kind: 'status', status: 403, message };
  server.putObject('configmaps', configMap('app', 'second'));
  await program.until(/"event":"unhealthy".*grant it by RBAC/);
  expect(await program.terminated()).toBe(0);
  const lines = program.stdout.split('\n').filter((line) => line.includes('"request":"patch pods in shop"'));
  expect(lines).toHaveLength(2);
  expect(lines[0]).not.toContain('RBAC');
  expect(lines[1]).toMatch(/"more":\d+/);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    time: expect.any(String) as string,
    level: 'warn',
    event: 'retry',
    message: expect.stringMatching(
      /^sync-pods: Cannot patch pods in shop: .*; next attempt in \d+ ms$/,
    ) as string,
    component: 'PodSync',
    name: 'sync-pods',
    request: 'patch pods in shop',
    delayMs: expect.any(Number) as number,
    error: { name: 'KubernetesError', code: 'ERR_CLUSTER_FORBIDDEN', message: expect.any(String) as string },
  });
});
