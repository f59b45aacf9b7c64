/** `PodSync` with a client of another copy of the library, as two packages of a program may bring it. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

import { KubeConfig } from '@kubernetes/client-node';
import { PodSync } from '@resilient-watcher/sync-pods';
import * as own from 'resilient-watcher/kubernetes';
import { expect, onTestFinished, test, vi } from 'vitest';

/** A client of another copy, for an API server that answers lists in this way. */
async function foreignClient(
  answer: (query: URLSearchParams, response: ServerResponse) => void,
): Promise<own.ClusterClient> {
  const server = createServer(({ url = '' }, response) =>
    answer(new URLSearchParams(url.split('?')[1]), response),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  vi.resetModules();
  const { clusterClient } = await import('resilient-watcher/kubernetes');
  expect(clusterClient).not.toBe(own.clusterClient);
  const kubeConfig = new KubeConfig();
  const { port } = server.address() as AddressInfo;
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u' },
  );
  return {
    ...clusterClient({ kubeConfig }),
    lines: ({ signal }) => new Readable({ objectMode: true, read: () => undefined, signal }),
  };
}

function syncOf(client: own.ClusterClient): PodSync {
  const sync = new PodSync({ client, namespaces: ['shop'] });
  onTestFinished(() => sync.close());
  return sync;
}

test('a page that is too large for a client of another copy is requested again with fewer objects', async () => {
  const limits = new Set<string | null>();
  const client = await foreignClient((query, response) => {
    const limit = query.get('limit');
    limits.add(limit);
    response.end(
      limit === '250'
        ? Buffer.alloc(5 * 2 ** 20, ' ')
        : JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }),
    );
  });
  const sync = syncOf(client);
  const retries = vi.fn();
  sync.on('retry', retries);
  await sync.start();
  expect(sync.status().listed).toBe(true);
  expect([...limits]).toEqual(['250', '63']);
  expect(retries).not.toHaveBeenCalled();
});

test('a refusal by the API server is one with a client of another copy, too', async () => {
  const client = await foreignClient((_, response) => {
    response.writeHead(403).end(JSON.stringify({ kind: 'Status', message: 'you may not list' }));
  });
  const sync = syncOf(client);
  const retry = new Promise((resolve) => sync.once('retry', resolve));
  void sync.start().catch(() => undefined);
  expect(await retry).toMatchObject({
    error: {
      code: 'ERR_CLUSTER_FORBIDDEN',
      message: expect.stringContaining('you may not list (403)') as string,
    },
  });
});
