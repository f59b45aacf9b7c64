/** `sync-pods` against an API server on a real socket. */
import { expect, test } from 'vitest';

import { startMain } from '../support/command-line.js';
import { clusterScene } from '../support/cluster-scene.js';
import { ANNOTATION, configMap, podOf } from '../support/pod-sync-scene.js';

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
