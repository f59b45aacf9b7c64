/** The name and version in the audit log and in `managedFields` of the API server. */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

import { KubeConfig } from '@kubernetes/client-node';
import { clusterClient, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { expect, onTestFinished, test } from 'vitest';

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string };

test('every request says the name and the version of the package', async () => {
  const agents: unknown[] = [];
  const server = createServer(({ headers }, response) => {
    agents.push(headers['user-agent']);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u', token: 'opaque' },
  );
  const signal = new AbortController().signal;
  const client = clusterClient({ kubeConfig });
  await client.request({ method: 'GET', path: '/version', signal });
  for await (const line of client.lines({ method: 'GET', path: '/lines', signal }))
    expect(line).toBeDefined();
  const tokens = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  await tokens.requestToken({ audiences: [], expirationSeconds: 600 }, { signal }).catch(() => {});
  expect(agents).toEqual(Array(3).fill(`resilient-watcher/${version}`));
});
