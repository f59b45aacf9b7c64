/** Requests through the proxy of a kubeconfig (`proxy-url`), which may hang at any step. */
import { once } from 'node:events';
import { createServer as createHttp, type Server as HttpServer } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { inspect } from 'node:util';

import { KubeConfig } from '@kubernetes/client-node';
import { clusterClient, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { clusterScene } from '../support/cluster-scene.js';

const pair = createServerPair(createAuthority('proxy'));

/** The port of a proxy, and the connections that it has. */
async function listening(server: Server | HttpServer): Promise<{ port: number; open: Set<Socket> }> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    if (!('requestTimeout' in server)) socket.resume();
    socket.on('error', () => {}).on('close', () => open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, open };
}

/** Connects as the client asks, and passes on what both say. */
function tunnel(socket: Socket, port: number, answer: string | Buffer): void {
  const upstream = connect(port, '127.0.0.1', () => {
    socket.write(answer);
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('close', () => upstream.destroy()).on('error', () => upstream.destroy());
}

function connectProxy(
  answer: (socket: Socket, head: { authorization: string | undefined; url: string }) => void,
) {
  return createHttp().on('connect', ({ headers, url = '' }, socket: Socket) => {
    // Its end is noticed only while it is read.
    socket
      .on('error', () => {})
      .once('end', () => socket.end())
      .resume();
    answer(socket, { authorization: headers['proxy-authorization'], url });
  });
}

/** A SOCKS proxy that asks for a login, and then connects. */
function socksProxy(login: string): Server {
  return createServer((socket) => {
    const steps: ((bytes: Buffer) => void)[] = [
      () => socket.write(Buffer.from([5, 2])),
      (bytes) => {
        const user = bytes.subarray(2, 2 + (bytes[1] ?? 0)).toString();
        const password = bytes.subarray(3 + user.length).toString();
        socket.write(Buffer.from([1, `${user}:${password}` === login ? 0 : 1]));
      },
      (bytes) => {
        socket.removeAllListeners('data');
        tunnel(socket, bytes.readUInt16BE(bytes.length - 2), Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
      },
    ];
    socket.on('data', (bytes: Buffer) => steps.shift()?.(bytes));
  });
}

async function clusterBehind(proxyUrl: string) {
  const { server } = await clusterScene();
  const { token } = await server.mint('ci', 'builder');
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: server.url, caData: btoa(server.caPem), skipTLSVerify: false, proxyUrl },
    { name: 'u', token },
  );
  return { server, kubeConfig };
}

const path = '/api/v1/pods';
const WAYS: readonly [string, (kubeConfig: KubeConfig, signal: AbortSignal) => Promise<unknown>][] = [
  [
    'a token request',
    (kubeConfig, signal) =>
      tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig }).requestToken(
        { audiences: [], expirationSeconds: 600 },
        { signal },
      ),
  ],
  [
    'a request',
    (kubeConfig, signal) => clusterClient({ kubeConfig }).request({ method: 'GET', path, signal }),
  ],
  [
    'a watch',
    async (kubeConfig, signal) => {
      for await (const _ of clusterClient({ kubeConfig }).lines({ method: 'GET', path, signal })) break;
    },
  ],
];

const PROXIES: readonly [string, string, () => Server | HttpServer][] = [
  ['never answers CONNECT', 'http', () => connectProxy(() => {})],
  ['answers with half a head', 'http', () => connectProxy((socket) => socket.write('HTTP/1.1 200 Conn'))],
  [
    'only says nothing after CONNECT',
    'http',
    () => connectProxy((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n')),
  ],
  ['hangs in its handshake', 'https', () => createServer()],
  ['never answers SOCKS', 'socks5', () => createServer()],
  [
    'answers half of SOCKS',
    'socks5',
    () => createServer((socket) => socket.once('data', () => socket.write('\x05'))),
  ],
];

test.each(
  WAYS.flatMap(([way, ask]) =>
    PROXIES.map(([what, scheme, make]) => [way, what, scheme, make, ask] as const),
  ),
)('%s ends with its signal when the proxy %s, and leaves no connection', async (_, __, scheme, make, ask) => {
  const { port, open } = await listening(make());
  const { kubeConfig } = await clusterBehind(`${scheme}://127.0.0.1:${port}`);
  const abort = new AbortController();
  const answer = ask(kubeConfig, abort.signal);
  const rejected = expect(answer).rejects.toThrow('enough');
  await expect.poll(() => open.size).toBe(1);
  abort.abort(new Error('enough'));
  await rejected;
  await expect.poll(() => open.size).toBe(0);
});

test.each(WAYS)('%s goes through a proxy with a login', async (_, ask) => {
  for (const [scheme, make] of [
    [
      'http',
      () =>
        connectProxy((socket, { authorization, url }) => {
          expect(authorization).toBe(`Basic ${btoa('me:pass word')}`);
          tunnel(socket, Number(url.split(':')[1]), 'HTTP/1.1 200 OK\r\n\r\n');
        }),
    ],
    ['socks5', () => socksProxy('me:pass word')],
  ] as const) {
    const { port } = await listening(make());
    const { kubeConfig, server } = await clusterBehind(`${scheme}://me:pass%20word@127.0.0.1:${port}`);
    await ask(kubeConfig, AbortSignal.timeout(20_000));
    expect(server.requests.length).toBe(1);
  }
});

test('an API server with an IPv6 address is named to a proxy in brackets', async () => {
  const asked: string[] = [];
  const { port } = await listening(
    connectProxy((socket, { url }) => {
      asked.push(url);
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    }),
  );
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'c', server: 'https://[::1]:6443', skipTLSVerify: true, proxyUrl: `http://127.0.0.1:${port}` },
    { name: 'u', token: 'opaque' },
  );
  const signal = AbortSignal.timeout(20_000);
  await expect(clusterClient({ kubeConfig }).request({ method: 'GET', path, signal })).rejects.toThrow('502');
  expect(asked).toEqual(['[::1]:6443']);
});

test.each(WAYS)('%s through a proxy that refuses says why, without the password', async (_, ask) => {
  const answering = (text: string) => connectProxy((socket) => socket.end(text));
  for (const [scheme, make, message] of [
    ['http', () => answering('HTTP/1.1 407 Nope\r\n\r\n'), /the proxy .* answered 407 \(Nope\): give a user/],
    ['http', () => answering('HTTP/1.1 502 Bad Gateway\r\n\r\n'), /answered 502/],
    ['http', () => connectProxy((socket) => socket.destroy()), /ECONNRESET|hang up/],
    [
      'http',
      () => answering(`HTTP/1.1 200 OK\r\n${'X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(5_000)}`),
      /HPE_HEADER_OVERFLOW|ECONNRESET/,
    ],
    ['http', () => createServer((socket) => socket.end('nonsense\r\n\r\n')), /HPE_INVALID|ECONNRESET|Parse/],
    ['socks5', () => socksProxy('other:login'), /refuses the user/],
    [
      'socks5',
      () => createServer((socket) => socket.end('HTTP/1.1 400 No\r\n\r\n')),
      /does not speak SOCKS 5/,
    ],
    ['socks5', () => createServer((socket) => socket.destroy()), /ECONNRESET|closed the connection/],
  ] as const) {
    const { port } = await listening(make());
    const { kubeConfig } = await clusterBehind(`${scheme}://me:s3cret-pass@127.0.0.1:${port}`);
    const error = (await ask(kubeConfig, AbortSignal.timeout(20_000)).catch(
      (reason: unknown) => reason,
    )) as Error;
    expect(error.message).toMatch(message);
    expect((error as { code?: string }).code).toMatch(/^ERR_(TOKEN_NETWORK|CLUSTER_REQUEST)$/);
    expect(inspect(error, { depth: Infinity })).not.toMatch(/s3cret|czNjcmV0/);
  }
});

test('an HTTPS proxy that is not trusted is told as such', async () => {
  const { port } = await listening(createHttps(pair));
  const { kubeConfig } = await clusterBehind(`https://127.0.0.1:${port}`);
  await expect(WAYS[1]?.[1](kubeConfig, AbortSignal.timeout(20_000))).rejects.toThrow(/certificate/);
});
