/** A CA is removed, and the peers do what few do: they do not read, ignore GOAWAY, or use a tunnel. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer, get, type Agent, type AgentOptions } from 'node:https';
import { connect as connectTcp } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';

import { FakeClock } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, sniCallback, undiciDispatcher, type TlsFiles } from 'resilient-watcher/tls';
import { upgrade } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';

import { heldTimers } from '../support/held-timers.js';
import { client, dial, H2, mount, own, PREFACE } from '../support/leaving-ca.js';
import { listen } from '../support/tls-clients.js';

const [MAJOR = 0] = process.versions.node.split('.').map(Number);

/** HTTP/2 by hand: the request of a stream, and a ping. */
const requestOn = (stream: number): Buffer =>
  Buffer.from([0, 0, 6, 1, 5, 0, 0, 0, stream, 0x82, 0x87, 0x84, 0x41, 1, 0x61]);
const PING = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, ...Buffer.alloc(8)]);

test('a connection of plain TLS that has negotiated h2 ends', async () => {
  const { files, removeCa } = mount(own);
  const server = createTlsServer(
    { requestCert: true, ...H2 },
    (socket) => void socket.on('error', () => {}).write('x'),
  );
  await serveTls(server, files);
  const peer = dial(await listen(server), H2);
  await once(peer, 'data');
  const closed = once(peer, 'close');
  await removeCa();
  await closed;
});

test.each([
  ['no stream', []],
  ['a stream', [requestOn(1)]],
])('an HTTP/2 peer with %s that neither reads nor closes is gone after drainMs', async (_name, requests) => {
  const { files, removeCa } = mount(own);
  const clock = new FakeClock();
  const server = createSecureServer({ requestCert: true }, (_request, response) => {
    response.write(Buffer.alloc(1_000_000));
  });
  await serveTls(server, files, { clock });
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  const begun = once(server, requests.length > 0 ? 'request' : 'session');
  const peer = dial(await listen(server), H2);
  for (const bytes of [PREFACE, ...requests]) peer.write(bytes);
  const [socket] = await accepted;
  await begun;
  const closed = once(socket, 'close');
  await removeCa();
  await clock.advance(30_000);
  await closed;
});

test('a connection that has to end does so, also if the server no longer follows its files then', async () => {
  const { files, removeCa } = mount(own);
  const clock = new FakeClock();
  const server = createServer({ requestCert: true }, (_request, response) => void response.write('x'));
  const served = await serveTls(server, files, { clock });
  const peer = dial(await listen(server));
  peer.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(peer, 'data');
  const closed = once(peer, 'close');
  await removeCa();
  await served.close();
  await clock.advance(30_000);
  await closed;
});

test('a stream of an HTTP/2 peer that ignores GOAWAY is not begun', async () => {
  const { files, removeCa } = mount(own);
  const begun: (() => void)[] = [];
  const server = createSecureServer({ requestCert: true }, (_request, response) => {
    begun.push(() => response.end('y'));
    response.write('x');
  });
  await serveTls(server, files);
  const peer = dial(await listen(server), H2);
  peer.write(PREFACE);
  peer.write(requestOn(1));
  await expect.poll(() => begun.length).toBe(1);
  await removeCa();
  let said = '';
  peer.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  for (const bytes of [requestOn(3), requestOn(5), PING]) peer.write(bytes);
  // The acknowledgment of the ping comes after whatever the requests have caused.
  await expect.poll(() => said).toContain('\0\0\x08\x06\x01\0\0\0\0');
  const closed = once(peer, 'close');
  begun[0]?.();
  await closed;
  expect(begun).toHaveLength(1);
});

test('an HTTP/1 response of an HTTP/2 server is the last one of its connection', async () => {
  const { files, removeCa } = mount(own);
  const begun: string[] = [];
  let answer = (): void => {};
  const server = createSecureServer({ requestCert: true, allowHTTP1: true }, ({ url }, response) => {
    begun.push(url);
    answer = () => void response.end('answer');
  });
  await serveTls(server, files);
  const peer = dial(await listen(server));
  let said = '';
  peer.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  peer.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
  await expect.poll(() => begun).toEqual(['/1']);
  const closed = once(peer, 'close');
  await removeCa();
  peer.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
  answer();
  await closed;
  expect(said).toMatch(/Connection: close[\s\S]*answer/);
  expect(begun).toEqual(['/1']);
});

test('a host of sniCallback() keeps the CA of its clients when a set has none', async () => {
  const [host, main] = [mount(own), mount(own)];
  await host.files.start();
  const SNICallback = sniCallback({ localhost: host.files });
  const server = createTlsServer({ requestCert: true, SNICallback }, (socket) => socket.end('hello'));
  await serveTls(server, main.files);
  const port = await listen(server);
  const ask = async (): Promise<string> => {
    const socket = dial(port).setEncoding('utf8');
    return (await socket.toArray()).join('');
  };
  expect(await ask()).toBe('hello');
  await host.publish(own);
  expect(await ask()).toBe('hello');
});

/** A server behind a proxy, and an agent that asks it. */
async function startProxied(agentFor: (proxyEnv: object) => Agent): Promise<{
  readonly port: number;
  readonly tunnels: Duplex[];
  /** Whether the proxy answers. */
  readonly proxy: { isOpen: boolean };
  readonly agent: Agent;
  readonly ask: () => Promise<string>;
}> {
  const port = await listen(
    createServer({ cert: own.chain, key: own.key }, (_request, response) => response.end('hello')),
  );
  const tunnels: Duplex[] = [];
  const state = { isOpen: true };
  const proxy = createHttpServer();
  proxy.on('connect', (_request, socket: Duplex) => {
    tunnels.push(socket.on('error', () => {}));
    if (state.isOpen) open(socket, port);
  });
  const agent = agentFor({ HTTPS_PROXY: `http://127.0.0.1:${await listen(proxy)}` });
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<string> =>
    new Promise((resolve, reject) => {
      get('https://localhost', { agent }, (response) => {
        response.setEncoding('utf8').once('data', resolve);
      }).on('error', reject);
    });
  return { port, tunnels, proxy: state, agent, ask };
}

function open(tunnel: Duplex, port: number): void {
  tunnel.write('HTTP/1.1 200 OK\r\n\r\n');
  tunnel.pipe(connectTcp(port)).pipe(tunnel);
}

describe.runIf(MAJOR >= 24)('httpsAgent() behind a proxy', () => {
  const proxied = (files: TlsFiles) =>
    startProxied((proxyEnv) => httpsAgent(files, { keepAlive: true, proxyEnv } as AgentOptions));

  test('asks for files that are started, and ends its tunnels when a CA is removed', async () => {
    const { files, removeCa } = mount(client);
    const { tunnels, ask } = await proxied(files);
    await expect(ask()).rejects.toMatchObject({ code: 'ERR_TLS_UNAVAILABLE' });
    expect(tunnels).toEqual([]);
    await files.start();
    expect([await ask(), await ask(), tunnels.length]).toEqual(['hello', 'hello', 1]);
    const ended = tunnels.map((tunnel) => once(tunnel, 'close'));
    await removeCa();
    await Promise.all(ended);
    expect(files.status().endedConnections).toBe(1);
    expect([await ask(), tunnels.length]).toEqual(['hello', 2]);
  });

  test.each(['', ', and its agent was destroyed'])(
    'fails a request whose tunnel is not open when a CA is removed%s',
    async (isDestroyed) => {
      const { files, removeCa } = mount(client);
      const { port, tunnels, proxy, agent, ask } = await proxied(files);
      await files.start();
      proxy.isOpen = false;
      const stuck = ask();
      await expect.poll(() => tunnels.length).toBe(1);
      if (isDestroyed) agent.destroy();
      await removeCa();
      // Although the proxy says nothing.
      await expect(stuck).rejects.toMatchObject({ code: 'ERR_TLS_CA' });
      const [tunnel] = tunnels as [Duplex];
      const closed = once(tunnel, 'close');
      open(tunnel, port);
      await closed;
      await expect.poll(() => files.listenerCount('change')).toBe(0);
    },
  );
});

/** A server that upgrades each connection. */
async function startUpgrading(): Promise<number> {
  const server = createServer({ cert: own.chain, key: own.key });
  server.on('upgrade', (_request, socket: Duplex) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
  });
  return listen(server);
}

/** Each with a connection that it has upgraded, and how it ends itself. */
const UPGRADED = {
  httpsAgent: async (files: TlsFiles, port: number) => {
    const agent = httpsAgent(files);
    const headers = { connection: 'Upgrade', upgrade: 'x' };
    const request = get({ port, servername: 'localhost', agent, headers });
    const [, socket] = (await once(request, 'upgrade')) as [unknown, Duplex];
    const end = (): Promise<void> => {
      agent.destroy();
      return Promise.resolve();
    };
    return { socket, end };
  },
  undiciDispatcher: async (files: TlsFiles, port: number) => {
    const dispatcher = await undiciDispatcher(files, { connect: { servername: 'localhost' } });
    const { socket } = await upgrade(`https://127.0.0.1:${port}`, { dispatcher, protocol: 'x' });
    return { socket, end: () => dispatcher.close() };
  },
};

describe.each(['httpsAgent', 'undiciDispatcher'] as const)('an upgraded connection of %s()', (name) => {
  test.each([false, true])(
    'ends in 30 s when a CA is removed; its owner has ended before: %s',
    async (isOver) => {
      const { files, removeCa } = mount(client);
      const { socket, end } = await UPGRADED[name](files, await startUpgrading());
      const closed = once(
        socket.on('error', () => {}),
        'close',
      );
      if (isOver) await end();
      const due = heldTimers();
      await removeCa();
      expect(due.length).toBeGreaterThan(0);
      expect(socket.destroyed).toBe(false);
      for (const callback of due) callback();
      await closed;
      if (!isOver) await end();
      await expect.poll(() => files.listenerCount('change')).toBe(0);
    },
  );
});
