/** Tokens for a pod, which needs no Kubernetes client for them. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';

import { TokenRefresher, type TokenCredential } from 'resilient-watcher';
import { tokenRequestClient } from 'resilient-watcher/kubernetes';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { clientNodeFor } from '../../src/kubernetes/cluster-access.js';
import { clusterScene, type ClusterScene } from '../support/cluster-scene.js';
import { fsWith } from '../support/intercepted-fs.js';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const never = new AbortController().signal;

beforeEach(() => {
  vi.doMock('@kubernetes/client-node', () => {
    throw new Error('it was loaded');
  });
});
afterEach(() => {
  vi.doUnmock('@kubernetes/client-node');
  vi.unstubAllEnvs();
});

/** The file system of a pod, where the volume of the scene is mounted. */
function podFileSystem(mount: string): FileSystem {
  const at = (value: unknown): unknown => {
    if (typeof value !== 'string') return value;
    if (value.startsWith(ACCOUNT)) return mount + value.slice(ACCOUNT.length);
    // /var/run, which is a link on many systems, has to be a directory.
    return ACCOUNT.startsWith(value) ? mount : value;
  };
  return fsWith({ each: ({ args, make }) => make(args.map(at)) });
}

function requester({ server, directory }: ClusterScene, environment: Record<string, string> = {}) {
  const { hostname, port } = new URL(server.url);
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, ...environment };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const fs = podFileSystem(`${directory}/projected`);
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', fs });
  return (credential?: TokenCredential) =>
    client.requestToken(
      { audiences: ['vault'], expirationSeconds: 600, ...(credential && { credential }) },
      { signal: never },
    );
}

test('the token and the authority of the pod are read for each request, and both may be rotated', async () => {
  const scene = await clusterScene();
  const request = requester(scene);
  expect((await request()).token).toMatch(/^eyJ/);
  expect(scene.server.requests).toMatchObject([{ subject: 'system:serviceaccount:ci:builder', status: 201 }]);
  await scene.server.rotateSigningKey();
  await expect(request()).rejects.toMatchObject({
    code: 'ERR_TOKEN_UNAUTHORIZED',
    message: expect.stringContaining(`the token in ${ACCOUNT}/token`) as string,
  });
  await scene.project();
  await request();
  await scene.server.rotateCertificates();
  await expect(request()).rejects.toMatchObject({ code: 'ERR_TOKEN_NETWORK' });
  await scene.project();
  await request();
});

test('outside a pod a refresher does not start, and says what to do', async () => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '');
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder' });
  const refresher = new TokenRefresher({ client, tokenFile: false });
  onTestFinished(() => refresher.close());
  refresher.on('error', () => {});
  await expect(refresher.start()).rejects.toMatchObject({
    code: 'ERR_TOKEN_CLIENT',
    message: expect.stringMatching(/so this is not a pod: set the option kubeConfig$/) as string,
    cause: { code: 'ERR_KUBECONFIG' },
  });
  expect(refresher.state).toBe('failed');
});

test('in a pod a refresher waits for a CA and a token that are written later', async () => {
  const scene = await clusterScene();
  const ca = `${scene.directory}/projected/ca.crt`;
  const kept = readFileSync(ca);
  rmSync(`${scene.directory}/projected`, { recursive: true });
  const { hostname, port } = new URL(scene.server.url);
  vi.stubEnv('KUBERNETES_SERVICE_HOST', hostname);
  vi.stubEnv('KUBERNETES_SERVICE_PORT', port);
  const fs = podFileSystem(`${scene.directory}/projected`);
  const refresher = new TokenRefresher({
    client: tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', fs }),
    tokenFile: false,
    retryDelayMs: 1,
    maxRetryDelayMs: 1,
    minIntervalMs: 0,
  });
  onTestFinished(() => refresher.close());
  const retried = new Promise<Error>((resolve) => refresher.once('retry', ({ error }) => resolve(error)));
  await refresher.start();
  expect((await retried).message).toContain('ca.crt');
  mkdirSync(`${scene.directory}/projected`);
  writeFileSync(ca, kept);
  const { token } = await scene.server.mint('ci', 'builder');
  writeFileSync(`${scene.directory}/projected/token`, token);
  await vi.waitFor(() => expect(refresher.current).toBeDefined(), { timeout: 60_000 });
});

test.each([
  ['without a host', { KUBERNETES_SERVICE_HOST: '' }, /no KUBERNETES_SERVICE_HOST, so this is not a pod/],
  ['without a port', { KUBERNETES_SERVICE_PORT: '' }, /no KUBERNETES_SERVICE_PORT, so this is not a pod/],
  ['with a port that is none', { KUBERNETES_SERVICE_PORT: 'tcp://10.0.0.1:443' }, /do not form a URL/],
])('%s the message says what is missing', async (_, environment, message) => {
  const scene = await clusterScene();
  await expect(requester(scene, environment)()).rejects.toMatchObject({
    message: expect.stringMatching(message) as string,
  });
  expect(scene.server.requests).toEqual([]);
});

test('the address may be IPv6', async () => {
  const scene = await clusterScene();
  // Nobody answers there, but it is an address.
  const request = requester(scene, { KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '1' });
  await expect(request()).rejects.toMatchObject({ code: 'ERR_TOKEN_NETWORK' });
});

test.each([
  ['the authority is missing', 'ca.crt', undefined, 'ERR_KUBECONFIG'],
  ['the authority is not PEM', 'ca.crt', 'junk', 'ERR_KUBECONFIG'],
  ['the token is missing', 'token', undefined, 'ERR_TOKEN_FILE'],
  ['the token is empty', 'token', '', 'ERR_TOKEN_MALFORMED'],
])('%s: nothing is sent, and the file is named', async (_, key, contents, code) => {
  const scene = await clusterScene();
  const file = `${scene.directory}/projected/${key}`;
  rmSync(file);
  if (contents !== undefined) writeFileSync(file, contents);
  const error: unknown = await requester(scene)().catch((thrown: unknown) => thrown);
  expect(inspect(error)).toContain(code);
  expect((error as Error).message).toContain(`${ACCOUNT}/${key}`);
  expect(inspect(error, { depth: Infinity })).not.toContain('eyJ');
  expect(scene.server.requests).toEqual([]);
});

test.each([
  ['20.19.0', '@kubernetes/client-node@1'],
  ['22.18.0', '@kubernetes/client-node@1'],
  ['22.19.0', '@kubernetes/client-node'],
  ['24.0.0', '@kubernetes/client-node'],
])('with Node.js %s the client to install is %s', (node, name) => {
  expect(clientNodeFor(node)).toBe(name);
});
