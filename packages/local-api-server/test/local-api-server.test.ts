import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { connect } from 'node:tls';
import { join } from 'node:path';

import { AuthenticationV1Api, CoreV1Api } from '@kubernetes/client-node';
import { decodeJwt } from 'jose';
import { LocalApiServer, type LocalApiServerOptions } from '@resilient-watcher/local-api-server';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { isInstalled, run } from '../../../test/support/command.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { kubeConfigOf } from './support/kube-config.js';

const HOUR_MS = 3_600_000;
const builder = { name: 'builder', namespace: 'ci' };

async function startServer(options?: LocalApiServerOptions): Promise<LocalApiServer> {
  const server = await LocalApiServer.start(options);
  onTestFinished(() => server.close());
  server.addServiceAccount('ci', 'builder');
  return server;
}

function whoAmI(server: LocalApiServer, token: string): Promise<unknown> {
  const api = kubeConfigOf(server, token).makeApiClient(AuthenticationV1Api);
  return api.createSelfSubjectReview({ body: {} }).then(
    (review) => review.status?.userInfo?.username,
    (error: unknown) => (error as { code?: number }).code ?? error,
  );
}

test('client-node gets a token by TokenRequest, and the server takes it until its signing key is rotated', async () => {
  const server = await startServer();
  const first = await server.mint('ci', 'builder');
  const api = kubeConfigOf(server, first.token).makeApiClient(CoreV1Api);
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'builder-0', uid: 'u1' };
  const spec = { audiences: ['vault', 'sts'], expirationSeconds: 600, boundObjectRef };
  const { status } = await api.createNamespacedServiceAccountToken({ ...builder, body: { spec } });
  const claims = decodeJwt(status?.token ?? '');
  expect(claims).toMatchObject({
    sub: 'system:serviceaccount:ci:builder',
    aud: ['vault', 'sts'],
    'kubernetes.io': { namespace: 'ci', pod: { name: 'builder-0', uid: 'u1' } },
  });
  expect(status?.expirationTimestamp?.getTime()).toBe((claims.exp ?? 0) * 1000);

  const review = async (audiences: string[]): Promise<unknown> => {
    const authentication = kubeConfigOf(server, (await server.mint('ci', 'builder')).token);
    const reviews = authentication.makeApiClient(AuthenticationV1Api);
    const body = { spec: { token: status?.token ?? '', audiences } };
    return (await reviews.createTokenReview({ body })).status;
  };
  expect(await review(['sts'])).toMatchObject({ authenticated: true, audiences: ['sts'] });
  expect(await review(['other'])).toMatchObject({ authenticated: false });
  expect(await whoAmI(server, status?.token ?? '')).toBe(401);
  expect(await whoAmI(server, first.token)).toBe('system:serviceaccount:ci:builder');

  await server.rotateSigningKey();
  expect(await whoAmI(server, first.token)).toBe(401);
  expect(await review(['sts'])).toMatchObject({ authenticated: false, error: 'invalid bearer token' });
});

test('tokens are dated and judged by the clock of the server', async () => {
  const clock = new FakeClock();
  const server = await startServer({ clock });
  const { token } = await server.mint('ci', 'builder', { expirationSeconds: 3_600 });
  clock.jump(HOUR_MS + 59_000);
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
  clock.jump(2_000);
  expect(await whoAmI(server, token)).toBe(401);
  server.skewMs = HOUR_MS;
  const ahead = await server.mint('ci', 'builder');
  server.skewMs = 0;
  expect(await whoAmI(server, ahead.token)).toBe(401);
});

test('the default token of a pod says a year, and its answer an hour', async () => {
  const server = await startServer({ clock: new FakeClock(0) });
  const boundObject = { kind: 'Pod', name: 'p', uid: 'u' };
  const answer = await server.mint('ci', 'builder', { expirationSeconds: 3_607, boundObject });
  expect(answer.expirationTimestamp).toBe('1970-01-01T01:00:07Z');
  const claims = decodeJwt(answer.token);
  expect(claims).toMatchObject({ iat: 0, exp: 31_536_000, 'kubernetes.io': { warnafter: 3_607 } });
});

test('a token of a pod for another audience is valid as long as its answer says, whatever was asked for', async () => {
  const server = await startServer({ clock: new FakeClock(0) });
  const boundObject = { kind: 'Pod', name: 'p', uid: 'u' };
  const { token } = await server.mint('ci', 'builder', {
    expirationSeconds: 3_607,
    boundObject,
    audiences: ['vault'],
  });
  const claims = decodeJwt(token);
  expect(claims).toMatchObject({ aud: ['vault'], exp: 3_607 });
  expect(claims['kubernetes.io']).not.toHaveProperty('warnafter');
});

test('requests meet the scripted faults', async () => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  server.script({ kind: 'throttled', retryAfterSeconds: 7 }, { kind: 'unavailable' }, { kind: 'reset' });
  expect(await whoAmI(server, token)).toBe(429);
  expect(await whoAmI(server, token)).toBe(503);
  expect(await whoAmI(server, token)).toBeInstanceOf(Error);
  await server.refuse();
  expect(await whoAmI(server, token)).toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await server.listen();
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
  expect(server.requests.map(({ status }) => status)).toEqual([429, 503, undefined, 201]);
});

test('a stuck request keeps neither the others nor the end of the server waiting', async () => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  server.script({ kind: 'stuck' });
  const stuck = whoAmI(server, token);
  await expect.poll(() => server.requests.length).toBe(1);
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
  await server.close();
  expect(await stuck).toBeInstanceOf(Error);
});

test('clients that say nothing, or only half of it, do not keep the server from closing', async () => {
  const server = await startServer();
  const address = { port: Number(new URL(server.url).port), host: '127.0.0.1' };
  // Without a TLS handshake, with half a request, and with half a body.
  const silent = connectPlain(address);
  const slow = connect({ ...address, rejectUnauthorized: false });
  const half = connect({ ...address, rejectUnauthorized: false });
  const sockets = [silent, slow, half];
  const closed = sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve)));
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.all([once(silent, 'connect'), once(slow, 'secureConnect'), once(half, 'secureConnect')]);
  slow.write('GET /ver');
  half.write('POST /api HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf');
  await server.close();
  await Promise.all(closed);
});

test('new certificates are of a new authority', async () => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  const trusting = kubeConfigOf(server, token).makeApiClient(AuthenticationV1Api);
  await server.rotateCertificates();
  await expect(trusting.createSelfSubjectReview({ body: {} })).rejects.toThrow();
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
});

test.skipIf(!isInstalled('kubectl'))('kubectl talks to it as to any API server', async () => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  const home = temporaryDirectory();
  const kubeconfig = join(home, 'config');
  writeFileSync(kubeconfig, kubeConfigOf(server, token).exportConfig());
  const kubectl = async (...args: string[]): Promise<unknown> => {
    const result = await run('kubectl', args, { HOME: home, KUBECONFIG: kubeconfig });
    return result.code === 0 ? JSON.parse(result.stdout) : result;
  };
  expect(await kubectl('version', '-o', 'json')).toMatchObject({ serverVersion: { major: '1' } });
  expect(await kubectl('auth', 'whoami', '-o', 'json')).toMatchObject({
    status: { userInfo: { username: 'system:serviceaccount:ci:builder' } },
  });
  expect(
    await kubectl('create', 'token', 'builder', '-n', 'ci', '--duration', '10m', '-o', 'json'),
  ).toMatchObject({ spec: { expirationSeconds: 600 } });
  expect(await kubectl('get', 'serviceaccounts', '-n', 'ci', '-o', 'json')).toMatchObject({
    items: [{ metadata: { name: 'builder' } }],
  });
  expect(await kubectl('create', 'token', 'nobody', '-n', 'ci')).toMatchObject({
    stderr: expect.stringContaining('serviceaccounts "nobody" not found') as string,
  });
});

/** Sends bytes as they are, and resolves to what came back when the connection ends, or after the first answer. */
function sendRaw(server: LocalApiServer, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(new URL(server.url).port), rejectUnauthorized: false });
    let answer = '';
    socket.on('data', (data: Buffer) => {
      answer += data.toString();
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
    socket.write(bytes);
  });
}

test.each<[string, (token: string) => string, RegExp]>([
  ['GET //', () => 'GET // HTTP/1.1\r\nhost: x\r\n\r\n', /^HTTP\/1.1 401/],
  [
    'GET // by somebody known',
    (token) => `GET // HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`,
    / 404 /,
  ],
  ['an absolute URL', () => 'GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n', /^HTTP\/1.1 401/],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1.1 400/],
  ['no HTTP at all', () => '\0\0\r\n\r\n', /^HTTP\/1.1 400/],
])('%s does not end the server', async (_, bytes, answer) => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  expect(await sendRaw(server, bytes(token))).toMatch(answer);
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
});

test.each<[string, unknown, number]>([
  ['more than 1 MiB', { spec: { audiences: ['x'.repeat(2 * 1024 * 1024)] } }, 413],
  ['null', null, 400],
  ['a spec of null', { spec: null }, 400],
  ['audiences that are text', { spec: { audiences: 'vault' } }, 400],
  ['a bound object without a kind', { spec: { boundObjectRef: { kind: 1 } } }, 400],
  ['a life that is text', { spec: { expirationSeconds: 'long' } }, 400],
  ['a life of NaN', { spec: { expirationSeconds: 1e999 } }, 201],
])('a body of %s is answered', async (_, body, status) => {
  const server = await startServer();
  const { token } = await server.mint('ci', 'builder');
  const text = JSON.stringify(body);
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    const url = `${server.url}/api/v1/namespaces/ci/serviceaccounts/builder/token`;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sending = request(
      url,
      { method: 'POST', headers, rejectUnauthorized: false, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    sending.on('error', reject).end(text);
  });
  expect(answer).toBe(status);
  expect(await whoAmI(server, token)).toBe('system:serviceaccount:ci:builder');
});
