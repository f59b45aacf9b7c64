import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { createServer as createProxy, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { KubeConfig } from '@kubernetes/client-node';
import { TokenCredential, TokenRefresher, type TokenError } from 'resilient-watcher';
import {
  kubeconfigSink,
  tokenRequestClient,
  withTokenFile,
  type TokenRequestClientOptions,
} from 'resilient-watcher/kubernetes';
import { FakeClock, KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { clientNodes } from '../support/client-nodes.js';
import { clusterScene, type ClusterScene } from '../support/cluster-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const builder = { namespace: 'ci', serviceAccount: 'builder' };
const never = new AbortController().signal;
afterEach(() => {
  vi.doUnmock('@kubernetes/client-node');
  vi.unstubAllEnvs();
});

/** A second volume beside the pod's own, with a short token that kubelet replaces sooner. */
function shortToken({ server, directory }: ClusterScene) {
  const volume = new KubeletVolume(join(directory, 'short'));
  return {
    path: volume.path('token'),
    async project(): Promise<string> {
      const { token } = await server.mint('ci', 'builder', { expirationSeconds: 600 });
      volume.publish({ token });
      return token;
    },
  };
}

test('after a rotation of the signing key the first replaced projected token suffices', async () => {
  const scene = await clusterScene();
  runInPodOf(scene);
  const short = shortToken(scene);
  await short.project();
  await using refresher = new TokenRefresher({
    client: tokenRequestClient({ ...builder, kubeConfig: scene.inPod() }),
    tokenFile: short.path,
    minIntervalMs: 0,
    wakeJitterMs: 0,
  });
  const errors: TokenError[] = [];
  refresher.on('retry', ({ error }) => errors.push(error));
  await refresher.start();
  await scene.server.rotateSigningKey();
  await refresher.refresh().catch(() => {});
  expect(errors[0]?.code).toBe('ERR_TOKEN_UNAUTHORIZED');
  expect(errors[0]?.message).toMatch(
    new RegExp(`${short.path} \\(issued \\d+ s ago, seen there \\d+ s ago\\)`),
  );
  expect(errors[0]?.message).toMatch(new RegExp(`${scene.tokenFile} \\(issued \\d+ s ago\\)`));

  // The pod's own token, which the client reads, stays the old one.
  const minted = new Promise((resolve) => refresher.once('token', resolve));
  await short.project();
  await minted;
  expect(scene.server.requests.at(-1)).toMatchObject({ status: 201 });
});

/** As the environment of a pod of this cluster has it. */
function runInPodOf({ server }: ClusterScene): void {
  const { hostname, port } = new URL(server.url);
  vi.stubEnv('KUBERNETES_SERVICE_HOST', hostname);
  vi.stubEnv('KUBERNETES_SERVICE_PORT', port);
}

/** A proxy on the way to the API server; resolves to its URL. */
async function tunnelTo({ server }: ClusterScene): Promise<string> {
  const proxy = createProxy().on('connect', (_request, client: Duplex) => {
    const { hostname, port } = new URL(server.url);
    const upstream = connect(Number(port), hostname);
    client
      .on('error', () => {})
      .pipe(upstream.on('error', () => {}))
      .pipe(client);
    client.write('HTTP/1.1 200 OK\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

type Given = Partial<TokenRequestClientOptions>;

/** Asks with a projected token at hand; resolves to the statuses that the server answered with. */
async function statusesOf(
  scene: ClusterScene,
  options: Partial<TokenRequestClientOptions>,
  projected: string,
): Promise<(number | undefined)[]> {
  const credential = new TokenCredential({ value: projected, path: '/short/token', seenAt: 0 });
  const client = tokenRequestClient({ ...builder, ...options });
  await client
    .requestToken({ audiences: [], expirationSeconds: 600, credential }, { signal: never })
    .catch((error: unknown) => expect(inspect(error, { depth: Infinity })).not.toContain('eyJ'));
  return scene.server.requests.map(({ status }) => status);
}

test.each<[string, number[], (scene: ClusterScene, dead: string) => Given | Promise<Given>]>([
  [
    'a pod: first, before its own',
    [201],
    (scene) => {
      runInPodOf(scene);
      return { kubeConfig: scene.inPod() };
    },
  ],
  [
    'another cluster with a token file of the same issuer and audience: not at all',
    [401],
    (scene) => ({ kubeConfig: scene.inPod() }),
  ],
  [
    'another cluster with a token file of another issuer: not at all',
    [401],
    (scene) => {
      writeFileSync(scene.tokenFile, mintTestToken({ iss: 'https://elsewhere' }));
      return { kubeConfig: scene.inPod() };
    },
  ],
  [
    'another cluster with an opaque token file: not at all',
    [401],
    (scene) => {
      writeFileSync(scene.tokenFile, 'opaque-and-dead');
      return { kubeConfig: scene.inPod() };
    },
  ],
  [
    'a token of the same issuer for another audience: not at all',
    [401],
    (scene) => {
      runInPodOf(scene);
      const [, claims = ''] = readFileSync(scene.tokenFile, 'utf8').split('.');
      const { iss } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { iss: string };
      return { kubeConfig: scene.kubeconfigFile(mintTestToken({ iss, aud: ['elsewhere'] })) };
    },
  ],
  [
    "a kubeconfig with a token of the same issuer for the pod's API server: after a 401",
    [401, 201],
    (scene, dead) => {
      runInPodOf(scene);
      return { kubeConfig: scene.kubeconfigFile(dead) };
    },
  ],
  [
    'a kubeconfig with a token of the same issuer for another API server: not at all',
    [401],
    (scene, dead) => {
      runInPodOf(scene);
      vi.stubEnv('KUBERNETES_SERVICE_PORT', '1');
      return { kubeConfig: scene.kubeconfigFile(dead) };
    },
  ],
  [
    "a kubeconfig with a token file for the pod's API server behind a proxy: not at all",
    [401],
    async (scene) => {
      runInPodOf(scene);
      const proxyUrl = await tunnelTo(scene);
      const kubeConfig = scene.inPod();
      kubeConfig.clusters = kubeConfig.clusters.map((cluster) => ({ ...cluster, proxyUrl }));
      return { kubeConfig };
    },
  ],
  [
    'a kubeconfig with a token of another issuer: not at all',
    [401],
    (scene) => ({ kubeConfig: scene.kubeconfigFile(mintTestToken({ iss: 'https://elsewhere' })) }),
  ],
  [
    'a kubeconfig with an opaque token: not at all',
    [401],
    (scene) => ({ kubeConfig: scene.kubeconfigFile('opaque-and-dead') }),
  ],
  [
    '"always": first',
    [201],
    (scene, dead) => ({ kubeConfig: scene.kubeconfigFile(dead), credential: 'always' }),
  ],
  [
    '"never": not at all',
    [401],
    (scene, dead) => ({ kubeConfig: scene.kubeconfigFile(dead), credential: 'never' }),
  ],
])('the projected token authenticates for %s', async (_, statuses, options) => {
  const scene = await clusterScene();
  const dead = (await scene.server.mint('ci', 'builder')).token;
  await scene.server.rotateSigningKey();
  const projected = (await scene.server.mint('ci', 'builder')).token;
  expect(await statusesOf(scene, await options(scene, dead), projected)).toEqual(statuses);
});

const pair = createServerPair(createAuthority('hostile'));

/** A server that answers as it likes, and a kubeconfig for it. */
async function hostileServer(answer: (response: ServerResponse) => void) {
  const seen: string[] = [];
  const server: Server = createServer(pair, (request, response) => {
    seen.push(request.headers.authorization ?? '');
    response.on('error', () => {});
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: url, skipTLSVerify: true },
    { name: 'u', token: 's3cret-token' },
  );
  return { url, seen, kubeConfig };
}

test.each(clientNodes)(
  'with client-node %s the token is not sent to the target of a redirect',
  async (_, clientNode) => {
    vi.doMock('@kubernetes/client-node', () => clientNode);
    const other = await hostileServer((response) => void response.end('{}'));
    for (const status of [301, 302, 307, 308]) {
      const { kubeConfig } = await hostileServer((response) => {
        response.writeHead(status, { location: `${other.url}/stolen` }).end();
      });
      const client = tokenRequestClient({ ...builder, kubeConfig });
      await expect(
        client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never }),
      ).rejects.toMatchObject({
        code: 'ERR_TOKEN_REQUEST',
        message: expect.stringContaining('redirects elsewhere') as string,
      });
    }
    expect(other.seen).toEqual([]);
  },
);

test.each(clientNodes)(
  'with client-node %s a client made after withTokenFile() sends no token to the target of a redirect',
  async (_, clientNode) => {
    vi.doMock('@kubernetes/client-node', () => clientNode);
    const other = await hostileServer((response) => void response.end('{}'));
    const { url } = await hostileServer((response) => {
      response.writeHead(307, { location: `${other.url}/stolen`, Location: `${other.url}/stolen` }).end();
    });
    const cluster = { name: 'c', server: url, skipTLSVerify: true };
    const path = join(temporaryDirectory(), 'token');
    writeFileSync(path, mintTestToken({}));
    const followed = new clientNode.KubeConfig();
    followed.loadFromClusterAndUser(cluster, { name: 'u' });
    await using _auth = withTokenFile(followed, { path });
    await followed
      .makeApiClient(clientNode.CoreV1Api)
      .listNamespace()
      .catch(() => {});
    expect(other.seen.filter((credential) => credential !== '')).toEqual([]);
  },
);

/** Answers for ever. */
function endless(response: ServerResponse): void {
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  response.writeHead(200, { 'content-type': 'application/json' });
  const more = (): void => {
    if (response.destroyed) return;
    if (response.write(chunk)) setImmediate(more);
    else response.once('drain', more);
  };
  more();
}

test.each(clientNodes)('with client-node %s an endless answer is aborted', async (_, clientNode) => {
  vi.doMock('@kubernetes/client-node', () => clientNode);
  let isClosed = false;
  const { kubeConfig } = await hostileServer((response) => {
    response.on('close', () => (isClosed = true));
    endless(response);
  });
  const client = tokenRequestClient({ ...builder, kubeConfig });
  await expect(
    client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never }),
  ).rejects.toThrow('the answer has more than 4194304 bytes');
  await expect.poll(() => isClosed).toBe(true);
});

test('a message of the server that quotes a token is shown without the token', async () => {
  const quoted = mintTestToken({ jti: 'quoted' });
  const { kubeConfig } = await hostileServer((response) => {
    const message = `token "${quoted}" (s3cret-token, s3cret%2Dtoken) is bound to a deleted pod: mint another`;
    response.writeHead(422).end(JSON.stringify({ kind: 'Status', message, details: { token: quoted } }));
  });
  const client = tokenRequestClient({ ...builder, kubeConfig });
  const error: unknown = await client
    .requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never })
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  expect((error as Error).message).toBe(
    'The API server issued no token for ci/builder (422): ' +
      'token "[redacted]" ([redacted], [redacted]) is bound to a deleted pod: mint another',
  );
  expect(inspect(error, { depth: Infinity, showHidden: true })).not.toMatch(/eyJ|s3cret/);
});

test('a missing or unusable client-node is reported as such, once, and not as a network failure', async () => {
  const missing = Object.assign(new Error("Cannot find package '@kubernetes/client-node'"), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
  for (const load of [() => Promise.reject(missing), () => ({ KubeConfig: function KubeConfig() {} })]) {
    vi.doMock('@kubernetes/client-node', load);
    const clock = new FakeClock();
    const client = tokenRequestClient({ ...builder, kubeConfig: '/etc/kubeconfig' });
    const refresher = new TokenRefresher({ client, clock, tokenFile: false });
    onTestFinished(() => refresher.close());
    const errors: unknown[] = [];
    refresher.on('error', (error) => errors.push(error));
    await expect(refresher.start()).rejects.toMatchObject({ code: 'ERR_TOKEN_CLIENT' });
    await clock.advance(3_600_000);
    expect(errors).toMatchObject([
      {
        code: 'ERR_TOKEN_CLIENT',
        message: expect.stringContaining('the package "@kubernetes/client-node') as string,
      },
    ]);
    vi.doUnmock('@kubernetes/client-node');
    vi.resetModules();
  }
});

test.each([[undefined], [null], ['/kubeconfig']])('kubeconfigSink(%j) says what it needs', (options) => {
  const make = (): unknown => kubeconfigSink(options as never);
  expect(make).toThrow(TypeError);
  expect(make).toThrow('kubeconfigSink: option');
});
