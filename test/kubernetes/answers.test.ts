/** What the answers of an API server, or of a proxy before it, mean: the promises of docs/errors.md. */
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

import { KubeConfig } from '@kubernetes/client-node';
import { tokenRequestClient } from 'resilient-watcher/kubernetes';
import { expect, onTestFinished, test } from 'vitest';

/** A cluster that gives this answer to every request. */
async function clusterAnswering(status: number, headers: OutgoingHttpHeaders): Promise<KubeConfig> {
  const server = createServer((_, response) => response.writeHead(status, headers).end('{}'));
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u', token: 'opaque-token-1' },
  );
  return kubeConfig;
}

test.each([
  [503, { 'retry-after': '9' }, { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 9_000 }],
  [
    503,
    { date: 'Thu, 01 Jan 1970 00:00:00 GMT', 'retry-after': 'Thu, 01 Jan 1970 00:00:09 GMT' },
    { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 9_000 },
  ],
  [503, { 'retry-after': 'soon' }, { code: 'ERR_TOKEN_REQUEST', retryAfterMs: undefined }],
  [503, {}, { code: 'ERR_TOKEN_REQUEST', retryAfterMs: undefined }],
  [500, { 'retry-after': '9' }, { code: 'ERR_TOKEN_REQUEST' }],
  [429, { 'retry-after': '9' }, { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 9_000 }],
  [400, {}, { code: 'ERR_TOKEN_INVALID' }],
  [409, {}, { code: 'ERR_TOKEN_INVALID' }],
  [422, {}, { code: 'ERR_TOKEN_INVALID' }],
  [408, {}, { code: 'ERR_TOKEN_TIMEOUT' }],
  [504, {}, { code: 'ERR_TOKEN_TIMEOUT' }],
])('%i with %j is told from other failures', async (status, headers, expected) => {
  expect(await errorAfter(status, headers)).toMatchObject(expected);
});

/** The error that a request for a token rejects with after such an answer. */
async function errorAfter(status: number, headers: OutgoingHttpHeaders): Promise<unknown> {
  const kubeConfig = await clusterAnswering(status, headers);
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  const request = { audiences: [], expirationSeconds: 600 };
  return client
    .requestToken(request, { signal: new AbortController().signal })
    .catch((error: unknown) => error);
}

test('a proxy that switches protocols has not answered', async () => {
  const headers = { connection: 'upgrade', upgrade: 'tunnel' };
  expect(await errorAfter(101, headers)).toMatchObject({ code: 'ERR_TOKEN_REQUEST' });
});

test.each(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'])(
  'a connection that fails with %s is told as one that took too long',
  async (code) => {
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromClusterAndUser(
      { name: 'c', server: 'https://127.0.0.1:1', skipTLSVerify: true },
      { name: 'u' },
    );
    kubeConfig.addAuthenticator({
      isAuthProvider: () => true,
      applyAuthentication: () => Promise.reject(Object.assign(new Error('no answer'), { code })),
    });
    const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
    const { signal } = new AbortController();
    await expect(
      client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal }),
    ).rejects.toMatchObject({ code: 'ERR_TOKEN_TIMEOUT' });
  },
);
