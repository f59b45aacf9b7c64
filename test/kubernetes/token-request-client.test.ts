import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import type { Cluster, User } from '@kubernetes/client-node';
import { decodeJwt } from 'jose';
import { TokenError, TokenRefresher, type TokenAnswer } from 'resilient-watcher';
import { tokenRequestClient, type TokenRequestClientOptions } from 'resilient-watcher/kubernetes';
import { FakeClock, mintTestToken } from 'resilient-watcher/testing';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { createAuthority, createServerPair } from '../support/certificates.js';
import { clientNodes } from '../support/client-nodes.js';
import { clusterScene, type ClusterScene } from '../support/cluster-scene.js';

const builder = { namespace: 'ci', serviceAccount: 'builder' };
const never = new AbortController().signal;

function ask(options: Partial<TokenRequestClientOptions>, signal = never): Promise<TokenAnswer> {
  const client = tokenRequestClient({ ...builder, ...options });
  return client.requestToken({ audiences: [], expirationSeconds: 3_600 }, { signal });
}

async function failure(asking: Promise<unknown>): Promise<TokenError> {
  const error = await asking.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TokenError);
  expect(inspect(error, { depth: Infinity })).not.toContain('eyJ');
  return error as TokenError;
}

/** Both lines of client-node; the second one's sources for the first as well. */
describe.each(clientNodes)('with client-node %s', (_, clientNode) => {
  beforeEach(() => {
    vi.doMock('@kubernetes/client-node', () => clientNode);
    onTestFinished(() => {
      vi.doUnmock('@kubernetes/client-node');
    });
  });

  test('requests the token with the identity of the pod', async () => {
    const { server, inPod } = await clusterScene();
    server.addServiceAccount('ci', 'deployer');
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'u' };
    const client = tokenRequestClient({
      namespace: 'ci',
      serviceAccount: 'deployer',
      kubeConfig: inPod(),
      boundObjectRef,
    });
    const answer = await client.requestToken(
      { audiences: ['vault'], expirationSeconds: 600 },
      { signal: never },
    );
    const claims = decodeJwt(answer.token);
    expect(claims).toMatchObject({
      sub: 'system:serviceaccount:ci:deployer',
      aud: ['vault'],
      'kubernetes.io': { pod: { name: 'p', uid: 'u' } },
    });
    expect(new Date(answer.expirationTimestamp).getTime()).toBe((claims.exp ?? 0) * 1000);
    expect(server.requests).toMatchObject([{ subject: 'system:serviceaccount:ci:builder', status: 201 }]);
  });

  test('reads a kubeconfig file for each request, even one that its own tokens are written to', async () => {
    const { server, kubeconfigFile } = await clusterScene();
    const { token } = await server.mint('ci', 'builder');
    const client = tokenRequestClient({ ...builder, kubeConfig: kubeconfigFile(token) });
    await client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never });
    await server.rotateSigningKey();
    kubeconfigFile((await server.mint('ci', 'builder')).token);
    await client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never });
  });

  test.each<[string, (scene: ClusterScene) => unknown, Record<string, unknown>]>([
    [
      'credentials that are not taken',
      ({ server }) => server.rotateSigningKey(),
      { code: 'ERR_TOKEN_UNAUTHORIZED', message: expect.stringContaining('ci/builder (401)') as string },
    ],
    [
      'RBAC',
      ({ server }) => server.forbid('ci', 'builder'),
      {
        code: 'ERR_TOKEN_FORBIDDEN',
        message: expect.stringMatching(/cannot create.*grant "create"/) as string,
      },
    ],
    [
      'no such ServiceAccount',
      ({ server }) => server.deleteServiceAccount('ci', 'builder'),
      { code: 'ERR_TOKEN_INVALID', message: expect.stringContaining('"builder" not found') as string },
    ],
    [
      'a server without the API',
      ({ server }) => (server.hasTokenRequest = false),
      { code: 'ERR_TOKEN_UNSUPPORTED' },
    ],
    [
      'too many requests',
      ({ server }) => server.script({ kind: 'throttled', retryAfterSeconds: 7 }),
      { code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 7_000 },
    ],
    [
      'a request that is refused',
      ({ server }) => server.script({ kind: 'status', status: 422, message: 'spec is invalid' }),
      { code: 'ERR_TOKEN_INVALID', message: expect.stringContaining('spec is invalid') as string },
    ],
    [
      'an outage behind a load balancer',
      ({ server }) => server.script({ kind: 'unavailable' }),
      { code: 'ERR_TOKEN_REQUEST', retryAfterMs: undefined },
    ],
    [
      'a gateway that waited in vain',
      ({ server }) => server.script({ kind: 'status', status: 504, message: 'timeout' }),
      { code: 'ERR_TOKEN_TIMEOUT' },
    ],
    [
      'an outage',
      ({ server }) => server.refuse(),
      { code: 'ERR_TOKEN_NETWORK', message: expect.stringContaining('ECONNREFUSED') as string },
    ],
    ['a dropped connection', ({ server }) => server.script({ kind: 'reset' }), { code: 'ERR_TOKEN_NETWORK' }],
  ])('%s is told from other failures', async (_, arrange, expected) => {
    const scene = await clusterScene();
    await arrange(scene);
    expect(await failure(ask({ kubeConfig: scene.inPod() }))).toMatchObject(expected);
  });
});

/** The kubeconfig of the pod, its one cluster or user changed. */
function inPodWith(
  { inPod }: ClusterScene,
  change: { readonly cluster?: Partial<Cluster>; readonly user?: Partial<User> },
): Partial<TokenRequestClientOptions> {
  const kubeConfig = inPod();
  kubeConfig.clusters = kubeConfig.clusters.map((cluster) => ({ ...cluster, ...change.cluster }));
  kubeConfig.users = kubeConfig.users.map((user) => ({ ...user, ...change.user }));
  return { kubeConfig };
}

/** A kubeconfig file that says this. */
function fileWith({ directory }: ClusterScene, text: string): Partial<TokenRequestClientOptions> {
  const kubeConfig = join(directory, 'bad');
  writeFileSync(kubeConfig, text);
  return { kubeConfig };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const authority = createAuthority('one');
const client = createServerPair(authority);
const certData = base64(client.cert);
const keyData = base64(client.key);
const otherKeyData = base64(createServerPair(authority).key);

test.each<[string, (scene: ClusterScene) => Partial<TokenRequestClientOptions>, string, string]>([
  [
    'a missing kubeconfig',
    ({ directory }) => ({ kubeConfig: `${directory}/none` }),
    'ERR_KUBECONFIG',
    'none: it does not exist',
  ],
  [
    'a kubeconfig that is a token',
    (scene) => ({ kubeConfig: scene.tokenFile }),
    'ERR_KUBECONFIG',
    'Cannot use',
  ],
  [
    'a kubeconfig that is a directory',
    ({ directory }) => ({ kubeConfig: directory }),
    'ERR_KUBECONFIG',
    'it is a directory',
  ],
  ['a kubeconfig that is empty', (scene) => fileWith(scene, ''), 'ERR_KUBECONFIG', 'Cannot use'],
  [
    'a kubeconfig that is no YAML',
    (scene) => fileWith(scene, 'users: [{'),
    'ERR_KUBECONFIG',
    'not a kubeconfig in YAML',
  ],
  [
    'half a kubeconfig',
    (scene) => {
      const whole = readFileSync(scene.kubeconfigFile(mintTestToken()), 'utf8');
      return fileWith(scene, whole.slice(0, whole.length / 2));
    },
    'ERR_KUBECONFIG',
    'Cannot use',
  ],
  [
    'a server that is no URL',
    (scene) => inPodWith(scene, { cluster: { server: '10.0.0.1' } }),
    'ERR_KUBECONFIG',
    'the server of its cluster is not a URL',
  ],
  [
    'a CA that is missing',
    (scene) => inPodWith(scene, { cluster: { caFile: '/nowhere/ca.crt' } }),
    'ERR_KUBECONFIG',
    '/nowhere/ca.crt: it does not exist',
  ],
  [
    'a CA that is none',
    (scene) => inPodWith(scene, { cluster: { caFile: scene.tokenFile } }),
    'ERR_KUBECONFIG',
    'not a bundle of PEM certificates',
  ],
  [
    'CA data that are none',
    (scene) => {
      const whole = readFileSync(scene.kubeconfigFile(mintTestToken()), 'utf8');
      return fileWith(scene, whole.replace(/(authority-data:) .*/, '$1 bm9uZQ=='));
    },
    'ERR_KUBECONFIG',
    'certificate-authority-data of',
  ],
  [
    'a key that is none',
    (scene) => inPodWith(scene, { user: { certData, keyData: base64('eyJ, secret') } }),
    'ERR_KUBECONFIG',
    'the client certificate and key of its user "inClusterUser" cannot be parsed',
  ],
  [
    'a client certificate that is none',
    (scene) => inPodWith(scene, { user: { certData: 'bm9uZQ==', keyData } }),
    'ERR_KUBECONFIG',
    'cannot be parsed',
  ],
  [
    'a key of another certificate',
    (scene) => inPodWith(scene, { user: { certData, keyData: otherKeyData } }),
    'ERR_KUBECONFIG',
    'do not match',
  ],
  [
    'a key file that is missing',
    (scene) => inPodWith(scene, { user: { certData, keyFile: '/nowhere/key' } }),
    'ERR_KUBECONFIG',
    '/nowhere/key',
  ],
  [
    'a certificate without a key',
    (scene) => inPodWith(scene, { user: { certData } }),
    'ERR_KUBECONFIG',
    'only one of client certificate and key',
  ],
])('%s is named in what the refresher tells', async (_, arrange, code, reason) => {
  const scene = await clusterScene();
  const client = tokenRequestClient({ ...builder, ...arrange(scene) });
  const refresher = new TokenRefresher({ client, tokenFile: false });
  onTestFinished(() => refresher.close());
  const errors: TokenError[] = [];
  refresher.on('retry', ({ error }) => void errors.push(error));
  await refresher.start();
  expect(errors).toMatchObject([{ message: expect.stringContaining(reason) as string, cause: { code } }]);
  expect(inspect(errors, { depth: Infinity })).not.toMatch(/eyJ|PRIVATE KEY/);
  expect(scene.server.requests).toEqual([]);
});

test('a missing token file is a token error, and no request is made without credentials', async () => {
  const { server, inPod, tokenFile } = await clusterScene();
  rmSync(tokenFile);
  expect(await failure(ask({ kubeConfig: inPod() }))).toMatchObject({ code: 'ERR_TOKEN_FILE' });
  expect(server.requests).toEqual([]);
});

test.each<[string, Record<string, unknown>, string]>([
  ['no namespace', { namespace: undefined }, 'option "namespace" must be a name'],
  ['no account', { serviceAccount: '' }, 'option "serviceAccount" must be a name'],
  ['a number for a kubeconfig', { kubeConfig: 1 }, 'option "kubeConfig" must be a path or a KubeConfig'],
  ['a bound object without a name', { boundObjectRef: { kind: 'Pod' } }, 'option "boundObjectRef"'],
])('%s is refused by name', (_, options, reason) => {
  const make = (): unknown => tokenRequestClient({ ...builder, ...options });
  expect(make).toThrow(TypeError);
  expect(make).toThrow(reason);
});

test('loading the Kubernetes client does not count against the time of a request', async () => {
  const { server, kubeconfigFile } = await clusterScene();
  const { token } = await server.mint('ci', 'builder', { expirationSeconds: 24 * 3_600 });
  const [begun, loaded] = [new Outcome<void>(), new Outcome<void>()];
  vi.doMock('@kubernetes/client-node', async (original) => {
    begun.resolve();
    await loaded.promise;
    return original();
  });
  onTestFinished(() => {
    vi.doUnmock('@kubernetes/client-node');
  });
  const clock = new FakeClock(Date.now());
  const client = tokenRequestClient({ ...builder, kubeConfig: kubeconfigFile(token) });
  const refresher = new TokenRefresher({ client, clock, tokenFile: false });
  onTestFinished(() => refresher.close());
  const retries: unknown[] = [];
  refresher.on('retry', ({ error }) => retries.push(error.message));
  const started = refresher.start();
  await begun.promise;
  await clock.advance(50_000);
  loaded.resolve();
  await started;
  expect([retries, refresher.current?.subject]).toEqual([[], 'system:serviceaccount:ci:builder']);
});
