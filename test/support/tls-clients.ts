/** Clients that verify the server. Each rejects when a handshake or a request fails. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { get, type Agent } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';

import { onTestFinished } from 'vitest';

import { rounds } from './rounds.js';

/** Where a client connects to, and what it trusts. */
interface Address {
  readonly port: number;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  readonly path?: string;
}

/** A client's view of one request. */
export interface Sight {
  readonly socket: TLSSocket;
  readonly fingerprint: string | undefined;
  readonly isResumed: boolean;
  readonly text: string;
}

/** Listens on a free port of the loopback interface until the test is over. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** One request by HTTP/1. */
export async function askHttps({ path, ...address }: Address, agent: Agent | false = false): Promise<Sight> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: '127.0.0.1', servername: 'localhost', path, ...address, agent }, resolve).on('error', reject);
  });
  const socket = response.socket as TLSSocket;
  const sight = { socket, fingerprint: fingerprintOn(socket), isResumed: socket.isSessionReused() };
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return { ...sight, text };
}

/** A session of HTTP/2, verified. */
export async function openHttp2({ port, ...options }: Address): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://localhost:${port}`, { ...options, host: '127.0.0.1' } as never);
  onTestFinished(() => session.destroy());
  const reset = Object.assign(new Error('The session was closed before it was open'), { code: 'ECONNRESET' });
  await new Promise((resolve, reject) =>
    session
      .once('connect', resolve)
      .once('error', reject)
      .once('close', () => reject(reset)),
  );
  return session;
}

/** One request in a session of HTTP/2. */
export async function askHttp2(session: ClientHttp2Session): Promise<string> {
  let text = '';
  for await (const chunk of session.request({ ':path': '/' }).setEncoding('utf8')) text += String(chunk);
  return text;
}

/** The certificate that the server showed. */
export function fingerprintOn(socket: unknown): string | undefined {
  return (socket as TLSSocket).getPeerX509Certificate()?.fingerprint256;
}

/** What a client sees when its connection ends before the response begins. */
const NOT_SERVED: readonly (string | number)[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ERR_TLS_CA'];

/** A request that is repeated, as RFC 9110 (9.2.2) allows for GET, if its connection ended before the response. */
export async function repeatable<T>(ask: () => Promise<T>, notServed = NOT_SERVED): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      if (attempt === 3 || !notServed.includes((error as { readonly code: string | number }).code))
        throw error;
    }
  }
}

/** Between two requests of a client, ms: in `npm test` other tests want the processor too. */
const PAUSE_MS = rounds(4, 0);

/** Does something again and again until it is told to stop. */
export function keepDoing<T>(work: () => Promise<T>): {
  /** So far. */
  readonly results: readonly T[];
  readonly stop: () => Promise<T[]>;
} {
  const results: T[] = [];
  const stopping = new AbortController();
  const doing = (async () => {
    while (!stopping.signal.aborted) {
      results.push(await work());
      // Also after work that failed at once: without a turn of the event loop nothing would ever stop it.
      await (PAUSE_MS > 0 ? setTimeout(PAUSE_MS) : setImmediate());
    }
    return results;
  })();
  doing.catch(() => {}); // told by `stop`
  onTestFinished(() => stopping.abort());
  return {
    results,
    stop: () => {
      stopping.abort();
      return doing;
    },
  };
}
