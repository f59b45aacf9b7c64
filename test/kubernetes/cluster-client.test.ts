/** What a request of `clusterClient` rejects with: the promises of docs/errors.md. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';

import { KubeConfig } from '@kubernetes/client-node';
import { ResilientError } from 'resilient-watcher';
import { clusterClient, KubernetesError, type ClusterClient } from 'resilient-watcher/kubernetes';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

const TOKEN = 'opaque-token-1';

async function clientOf(answer: RequestListener): Promise<ClusterClient> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u', token: TOKEN },
  );
  return clusterClient({ kubeConfig });
}

const PATH = '/api/v1/pods?limit=1';

/** Both ways to ask. */
const WAYS: readonly [string, (client: ClusterClient, signal: AbortSignal) => Promise<unknown>][] = [
  ['a request', (client, signal) => client.request({ method: 'GET', path: PATH, signal })],
  [
    'a watch',
    async (client, signal) => {
      const lines: string[] = [];
      for await (const line of client.lines({ method: 'GET', path: PATH, signal })) lines.push(line);
      return lines;
    },
  ],
];

const quoting = JSON.stringify({ kind: 'Status', message: `you sent ${TOKEN}` });

test.each(
  WAYS.flatMap(([way, ask]) =>
    (
      [
        ['an error status', (_, response) => response.writeHead(409).end(quoting), 'ERR_API_ANSWER'],
        ['a redirect', (_, response) => response.writeHead(302, { location: '/' }).end(), 'ERR_API_ANSWER'],
        [
          'a page that is too long',
          (_, response) => response.writeHead(500).end('x'.repeat(5 * 2 ** 20)),
          'ERR_API_TOO_LONG',
        ],
        ['a socket that ends', (request) => request.socket.destroy(), 'ERR_CLUSTER_REQUEST'],
        [
          'an answer that breaks off',
          (request, response) => {
            response.writeHead(200, { 'content-length': 100 }).write('{"a":');
            setImmediate(() => request.socket.destroy());
          },
          'ERR_CLUSTER_REQUEST',
        ],
      ] satisfies [string, RequestListener, string][]
    ).map(([what, answer, code]) => [way, what, code, answer, ask] as const),
  ),
)('%s that gets %s rejects with a KubernetesError (%s)', async (_, what, code, answer, ask) => {
  const client = await clientOf(answer);
  const error = (await ask(client, new AbortController().signal).catch((reason: unknown) => reason)) as Error;
  expect(error).toBeInstanceOf(KubernetesError);
  expect(error).toBeInstanceOf(ResilientError);
  expect(error).toMatchObject({ name: 'KubernetesError', code });
  if (what === 'an error status') expect(error).toMatchObject({ status: 409 });
  if (code === 'ERR_CLUSTER_REQUEST') {
    expect(error.message).toMatch(/^Cannot GET \/api\/v1\/pods: ECONNRESET: /);
    expect(error.cause).toMatchObject({ code: 'ECONNRESET' });
  }
  expect(inspect(error, { showHidden: false, depth: 5 }) + JSON.stringify(error)).not.toContain(TOKEN);
});

test('a watch may be as long as it likes, its lines may not', async () => {
  const line = 'x'.repeat(2 ** 20);
  const client = await clientOf((_, response) => {
    for (let count = 0; count < 6; count += 1) response.write(`${line}\n`);
    response.end(line.repeat(5));
  });
  const lengths: number[] = [];
  const read = async (): Promise<void> => {
    const { signal } = new AbortController();
    for await (const { length } of client.lines({ method: 'GET', path: PATH, signal })) lengths.push(length);
  };
  await expect(read()).rejects.toMatchObject({ code: 'ERR_API_TOO_LONG' });
  expect(lengths).toEqual(Array.from({ length: 6 }, () => line.length));
});

test.each(WAYS)('%s whose credentials do not come in time rejects with a KubernetesError', async (_, ask) => {
  const clock = new FakeClock();
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser({ name: 'c', server: 'https://a', skipTLSVerify: true }, { name: 'u' });
  kubeConfig.addAuthenticator({
    isAuthProvider: () => true,
    applyAuthentication: () => new Promise<never>(() => {}),
  });
  const asked = ask(clusterClient({ kubeConfig, clock }), new AbortController().signal).catch(
    (reason: unknown) => reason,
  );
  let error: unknown;
  void asked.then((reason) => (error = reason));
  while (error === undefined) {
    await clock.advance(30_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(error).toBeInstanceOf(KubernetesError);
  expect(error).toMatchObject({ code: 'ERR_CLUSTER_REQUEST' });
});

test.each(WAYS)('%s that is aborted rejects with the reason of its signal', async (_, ask) => {
  const controller = new AbortController();
  const reason = new Error('enough');
  const client = await clientOf(() => controller.abort(reason));
  await expect(ask(client, controller.signal)).rejects.toBe(reason);
});
