/** What the answers of an API server, or of a proxy before it, mean: the promises of docs/errors.md. */
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';

import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import type { TokenError } from 'resilient-watcher';
import { tokenRequestClient } from 'resilient-watcher/kubernetes';
import { FakeTokenClient } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

/** A cluster that gives this answer to every request. */
async function clusterAnswering(status: number, headers: OutgoingHttpHeaders): Promise<KubeConfig> {
  const server = createServer((_, response) => response.writeHead(status, headers).end('{}'));
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return clusterAt((server.address() as AddressInfo).port);
}

function clusterAt(port: number): KubeConfig {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u', token: 'opaque-token-1' },
  );
  return kubeConfig;
}

async function failureOf(options: object): Promise<TokenError> {
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', ...options });
  const request = { audiences: [], expirationSeconds: 600 };
  const asking = client.requestToken(request, { signal: new AbortController().signal });
  return (await asking.catch((reason: unknown) => reason)) as TokenError;
}

describe.each([
  ['the client of this library', (kubeConfig: KubeConfig) => ({ kubeConfig })],
  ['a CoreV1Api', (kubeConfig: KubeConfig) => ({ api: kubeConfig.makeApiClient(CoreV1Api) })],
])('with %s', (_, optionsOf) => {
  test.each([
    [503, { 'retry-after': '9' }, { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 9_000 }],
    [503, {}, { code: 'ERR_TOKEN_REQUEST', retryAfterMs: undefined }],
    [500, { 'retry-after': '9' }, { code: 'ERR_TOKEN_REQUEST' }],
    [429, { 'retry-after': '9' }, { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 9_000 }],
    [400, {}, { code: 'ERR_TOKEN_INVALID' }],
    [409, {}, { code: 'ERR_TOKEN_INVALID' }],
    [422, {}, { code: 'ERR_TOKEN_INVALID' }],
    [408, {}, { code: 'ERR_TOKEN_TIMEOUT' }],
    [504, {}, { code: 'ERR_TOKEN_TIMEOUT' }],
  ])('%i with %j is told from other failures', async (status, headers, expected) => {
    const error = await failureOf(optionsOf(await clusterAnswering(status, headers)));
    expect(error).toMatchObject(expected);
  });

  test('an answer that switches protocols is a failure', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');
    });
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const error = await failureOf(optionsOf(clusterAt((server.address() as AddressInfo).port)));
    expect(error).toMatchObject({ name: 'TokenError' });
  });
});

test('the 429 of FakeTokenClient is that of the real client', async () => {
  const cluster = await clusterAnswering(429, { 'retry-after': '9' });
  const { code, retryAfterMs } = await failureOf({ kubeConfig: cluster });
  expect(FakeTokenClient.tooManyRequests(9_000)).toMatchObject({ code, retryAfterMs });
});
