/**
 * Connections through the proxy of a kubeconfig (`proxy-url`). Those of client-node's agents do not end with the request: a
 * proxy that never answers would keep a socket for each attempt.
 */
import { Agent as HttpAgent, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { onAbort } from '../core/scheduling/abort.js';

/** The proxy did not open the connection. */
class ProxyError extends Error {
  readonly code = 'ERR_PROXY';
}

/** Whether this file knows the protocol, as client-go does. */
export function isKnownProxy(url: string): boolean {
  return URL.canParse(url) && /^(?:https?|socks(?:5h?)?):$/.test(new URL(url).protocol);
}

/** What a proxy is told of its user, `user:password`. */
export function proxyLogin(url: string): string | undefined {
  const { username, password } = new URL(url);
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return login === ':' ? undefined : login;
}

/**
 * An agent for one request, whose connection ends with the signal even while the proxy opens it.
 * @param own has the TLS settings; that of HTTP has none.
 */
export function tunnelAgent(own: HttpAgent, proxy: string, signal: AbortSignal): HttpAgent {
  const { options } = own as { readonly options?: object };
  const isSecure = own instanceof HttpsAgent;
  const agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);
  const connecting = agent as unknown as ConnectingAgent;
  const usual = connecting.createConnection.bind(agent);
  connecting.createConnection = (target, callback = () => {}) => {
    const { host = 'localhost', port = isSecure ? 443 : 80 } = target;
    openTunnel(new URL(proxy), host, Number(port), signal)
      .then((socket) => callback(null, isSecure ? usual({ ...target, socket }) : socket))
      .catch(callback);
    return undefined;
  };
  return agent;
}

/** How an agent opens its connections: https://nodejs.org/api/http.html#agentcreateconnectionoptions-callback. */
interface ConnectingAgent {
  createConnection(
    target: { readonly host?: string; readonly port?: number | string; readonly socket?: Socket },
    callback?: (error: unknown, socket?: Duplex) => void,
  ): Duplex | undefined;
}

async function openTunnel(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return proxy.protocol.startsWith('http')
    ? connectThroughHttp(proxy, host, port, signal)
    : connectThroughSocks(proxy, host, port, signal);
}

function connectThroughHttp(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const login = proxyLogin(proxy.href);
  const credentials = login && Buffer.from(login).toString('base64');
  const request = (proxy.protocol === 'https:' ? requestHttps : requestHttp)({
    method: 'CONNECT',
    ...addressOf(proxy, proxy.protocol === 'https:' ? 443 : 80),
    path: target,
    headers: { host: target, ...(credentials && { 'proxy-authorization': `Basic ${credentials}` }) },
    setHost: false,
    agent: false,
    signal,
  });
  return new Promise((resolve, reject) => {
    request
      .once('connect', ({ statusCode = 0, statusMessage = '' }, socket: Socket, head: Buffer) => {
        if (statusCode >= 200 && statusCode < 300) {
          if (head.length > 0) socket.unshift(head);
          resolve(socket);
          return;
        }
        socket.destroy();
        const advice = statusCode === 407 ? ': give a user and a password in proxy-url that it accepts' : '';
        reject(new ProxyError(`the proxy ${proxy.host} answered ${statusCode} (${statusMessage})${advice}`));
      })
      .once('error', reject)
      .end();
  });
}

/** RFC 1928 and 1929. The proxy looks the name up. */
async function connectThroughSocks(
  proxy: URL,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connectTcp(addressOf(proxy, 1080));
  const refuse = (why: string): never => {
    throw new ProxyError(`the proxy ${proxy.host} ${why}`);
  };
  const take = readerOf(socket, proxy);
  const forget = onAbort(signal, () => void socket.destroy(signal.reason as Error));
  try {
    const login = proxyLogin(proxy.href);
    socket.write(Buffer.from(login ? [5, 2, 0, 2] : [5, 1, 0]));
    const [version, method] = await take(2);
    if (version !== 5) refuse('does not speak SOCKS 5');
    if (method === 2 && login) {
      const end = login.indexOf(':');
      const [user, password] = [login.slice(0, end), login.slice(end + 1)];
      socket.write(Buffer.concat([Buffer.from([1]), counted(user), counted(password)]));
      if ((await take(2))[1] !== 0) refuse('refuses the user and the password in proxy-url');
    } else if (method !== 0) refuse('wants a user and a password in proxy-url');
    const address = isIP(host) === 4 ? [1, ...host.split('.').map(Number)] : [3, ...counted(host)];
    socket.write(Buffer.from([5, 1, 0, ...address, port >> 8, port & 0xff]));
    const [, reply, , kind] = await take(4);
    if (reply !== 0) refuse(`does not connect to ${host}:${port} (reply ${reply})`);
    const length = kind === 3 ? (await take(1))[0] : kind === 4 ? 16 : 4;
    await take((length ?? 0) + 2);
    // The server says nothing before it is asked.
    return socket.removeAllListeners('data');
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    forget();
  }
}

function addressOf({ hostname, port }: URL, usual: number): { host: string; port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) };
}

/** A text after its length. */
function counted(text: string): Buffer {
  const bytes = Buffer.from(text).subarray(0, 255);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

/** Returns a function that resolves to the next bytes that the proxy sends. */
function readerOf(socket: Socket, proxy: URL): (length: number) => Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  let failure: Error | undefined;
  let wake = (): void => {};
  socket
    .on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      wake();
    })
    .on('error', (error) => (failure = error))
    .once('end', () => socket.destroy())
    .once('close', () => {
      failure ??= new ProxyError(`the proxy ${proxy.host} closed the connection`);
      wake();
    });
  return async (length) => {
    while (bytes.length < length) {
      if (failure) throw failure;
      await new Promise<void>((resolve) => (wake = resolve));
    }
    const taken = bytes.subarray(0, length);
    bytes = bytes.subarray(length);
    return taken;
  };
}
