/** Requests of a `KubeConfig` share their connections, and new certificates get new ones. */
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

import type * as clientNode from '@kubernetes/client-node';
import { withTokenFile } from 'resilient-watcher/kubernetes';
import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';

import {
  createAuthority,
  createServerPair,
  type Authority,
  type CertificatePair,
} from '../support/certificates.js';
import { clientNodes } from '../support/client-nodes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { listen } from '../support/tls-clients.js';
import { fingerprintOf, secretOf } from '../support/tls-sets.js';

/** Watches all pods until the test ends; their names as they come. */
async function watchPods(
  client: typeof clientNode,
  kubeConfig: clientNode.KubeConfig,
): Promise<readonly string[]> {
  const names: string[] = [];
  const onPod = (_type: string, pod: { metadata: { name: string } }): void =>
    void names.push(pod.metadata.name);
  const controller = await new client.Watch(kubeConfig).watch('/api/v1/pods', {}, onPod, () => {});
  onTestFinished(() => controller.abort());
  return names;
}

/** A kubeconfig with a CA file and a token file for the server at this port. */
function followedFiles(client: typeof clientNode, { cert }: Authority, port: number) {
  const directory = temporaryDirectory();
  const [caFile, tokenFile] = [join(directory, 'ca.crt'), join(directory, 'token')];
  writeFileSync(caFile, cert);
  writeFileSync(tokenFile, mintTestToken());
  const kubeConfig = new client.KubeConfig();
  kubeConfig.loadFromOptions({
    clusters: [{ name: 'c', server: `https://localhost:${port}`, caFile }],
    users: [{ name: 'u', authProvider: { name: 'tokenFile', config: { tokenFile } } }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  return { kubeConfig, caFile };
}

test.each(clientNodes)(
  'client-node %s: a hundred lists share their connections, and a new CA leads to new ones',
  async (_version, client) => {
    const [authority, next] = [createAuthority('first'), createAuthority('second')];
    const [pair, nextPair] = [createServerPair(authority), createServerPair(next)];
    const streams: ServerResponse[] = [];
    let connections = 0;
    const server = createServer({ ...pair, keepAliveTimeout: 0 }, ({ url = '' }, response) => {
      response.setHeader('Content-Type', 'application/json');
      if (url.includes('watch=true')) {
        response.flushHeaders();
        streams.push(response);
      } else response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] }));
    });
    server.on('secureConnection', () => (connections += 1));
    const port = await listen(server);
    onTestFinished(() => server.closeAllConnections());

    const { kubeConfig, caFile } = followedFiles(client, authority, port);
    const auth = withTokenFile(kubeConfig);
    const api = kubeConfig.makeApiClient(client.CoreV1Api);
    const list = async (): Promise<number> => {
      const { items } = await api.listNamespacedPod({ namespace: 'default' });
      return items.length;
    };
    for (let index = 0; index < 100; index += 1) expect(await list()).toBe(0);
    // A request that comes in the very turn in which the last one ends may open a second one.
    expect(connections).toBeLessThanOrEqual(3);

    const names = await watchPods(client, kubeConfig);
    await expect.poll(() => streams.length).toBe(1);
    const before = connections;

    server.setSecureContext({ ...nextPair });
    writeFileSync(caFile, next.cert);
    expect([await list(), await list()]).toEqual([0, 0]);
    expect(connections).toBeGreaterThan(before);
    expect(connections).toBeLessThanOrEqual(before + 2);
    const event = { type: 'ADDED', object: { kind: 'Pod', metadata: { name: 'still-watched' } } };
    streams[0]?.write(`${JSON.stringify(event)}\n`);
    await expect.poll(() => names).toEqual(['still-watched']);
    await auth.close();
  },
);

test.each(clientNodes)(
  'client-node %s: a new client certificate is shown by the next request, half a pair by none, and a watch goes on',
  async (_version, client) => {
    const authority = createAuthority('clients');
    const [first, second] = [createServerPair(authority), createServerPair(authority)];
    const streams: ServerResponse[] = [];
    const shown: string[] = [];
    const options = { ...createServerPair(authority), ca: authority.cert, requestCert: true };
    const server = createServer(options, ({ url = '', socket }, response) => {
      shown.push((socket as TLSSocket).getPeerCertificate().fingerprint256);
      response.setHeader('Content-Type', 'application/json');
      if (url.includes('watch=true')) {
        response.flushHeaders();
        streams.push(response);
      } else response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] }));
    });
    const port = await listen(server);
    onTestFinished(() => server.closeAllConnections());

    const volume = new KubeletVolume(join(temporaryDirectory(), 'client'));
    const token = mintTestToken();
    volume.publish({ ...secretOf(first, authority.cert), token });
    const kubeConfig = new client.KubeConfig();
    const [certFile, keyFile] = [volume.path('tls.crt'), volume.path('tls.key')];
    const authProvider = { name: 'tokenFile', config: { tokenFile: volume.path('token') } };
    kubeConfig.loadFromOptions({
      clusters: [{ name: 'c', server: `https://localhost:${port}`, caFile: volume.path('ca.crt') }],
      users: [{ name: 'u', certFile, keyFile, authProvider }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
      currentContext: 'x',
    });
    const auth = withTokenFile(kubeConfig);
    const api = kubeConfig.makeApiClient(client.CoreV1Api);
    await api.listNamespacedPod({ namespace: 'default' });
    const names = await watchPods(client, kubeConfig);
    await expect.poll(() => streams.length).toBe(1);

    // client-node reads certificate and key one after the other, and so may get them of two revisions.
    volume.publish({ ...secretOf({ cert: second.cert, key: first.key }, authority.cert), token });
    await api.listNamespacedPod({ namespace: 'default' });
    volume.publish({ ...secretOf(second, authority.cert), token });
    await api.listNamespacedPod({ namespace: 'default' });
    await api.listNamespacedPod({ namespace: 'default' });
    const [one, two] = [fingerprintOf(first), fingerprintOf(second)];
    expect(shown).toEqual([one, one, one, two, two]);
    const event = { type: 'ADDED', object: { kind: 'Pod', metadata: { name: 'still-watched' } } };
    streams[0]?.write(`${JSON.stringify(event)}\n`);
    await expect.poll(() => names).toEqual(['still-watched']);
    await auth.close();
  },
);

test.each(clientNodes)(
  'client-node %s: a WebSocket (exec, attach, port-forward) is opened with the current CA and client certificate',
  async (_version, client) => {
    const [authority, next] = [createAuthority('first'), createAuthority('second')];
    const [pair, nextPair] = [createServerPair(authority), createServerPair(next)];
    const server = createServer({ ...pair, ca: [authority.cert, next.cert], requestCert: true });
    const shown: string[] = [];
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (_socket, { socket }) =>
      shown.push((socket as TLSSocket).getPeerCertificate().fingerprint256),
    );
    const port = await listen(server);
    onTestFinished(() => sockets.clients.forEach((socket) => socket.terminate()));

    const volume = new KubeletVolume(join(temporaryDirectory(), 'client'));
    const token = mintTestToken();
    const publish = ({ cert, key }: CertificatePair, ca: string): void =>
      void volume.publish({ ...secretOf({ cert, key }, ca), token });
    publish(pair, authority.cert);
    const kubeConfig = new client.KubeConfig();
    const [certFile, keyFile] = [volume.path('tls.crt'), volume.path('tls.key')];
    const authProvider = { name: 'tokenFile', config: { tokenFile: volume.path('token') } };
    kubeConfig.loadFromOptions({
      clusters: [{ name: 'c', server: `https://localhost:${port}`, caFile: volume.path('ca.crt') }],
      users: [{ name: 'u', certFile, keyFile, authProvider }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
      currentContext: 'x',
    });
    const auth = withTokenFile(kubeConfig);
    const exec = async (): Promise<void> => {
      const socket = await new client.Exec(kubeConfig).exec(
        'ns',
        'pod',
        'app',
        ['date'],
        null,
        null,
        null,
        false,
      );
      socket.close();
    };
    await exec();
    server.setSecureContext({ ...nextPair, ca: [authority.cert, next.cert] });
    await expect(exec()).rejects.toThrow();
    publish(nextPair, next.cert);
    await exec();
    await exec();
    expect(shown).toEqual([fingerprintOf(pair), fingerprintOf(nextPair), fingerprintOf(nextPair)]);
    await auth.close();
  },
);

test.each(clientNodes)(
  'client-node %s: close() closes the connections, which would stay open for later requests',
  async (_version, client) => {
    const authority = createAuthority('kept');
    // The client is told that a connection may be idle for ten minutes.
    const options = { ...createServerPair(authority), keepAliveTimeout: 600_000 };
    const open = new Set<Socket>();
    const server = createServer(options, (_request, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] }));
    });
    server.on('secureConnection', (socket: Socket) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    const port = await listen(server);
    onTestFinished(() => server.closeAllConnections());
    const { kubeConfig } = followedFiles(client, authority, port);
    const auth = withTokenFile(kubeConfig);
    onTestFinished(() => auth.close());
    await kubeConfig.makeApiClient(client.CoreV1Api).listNamespacedPod({ namespace: 'default' });
    expect(open.size).toBe(1);
    await auth.close();
    await expect.poll(() => open.size).toBe(0);
  },
);
