/**
 * Ends connections that are older than the current certificate, and connections whose peer is no longer trusted,
 * without interrupting requests.
 *
 * | connection                 | within `drainMs` after a certificate change | when the peer is no longer trusted |
 * |----------------------------|---------------------------------------------|------------------------------------|
 * | HTTP/1, request in flight  | this response or the next one has           | it is closed after the response    |
 * |                            | `Connection: close`                         |                                    |
 * | HTTP/1, idle               | left to the server's `keepAliveTimeout`: a  | closed at once                     |
 * |                            | request may be on its way                   |                                    |
 * | HTTP/2                     | GOAWAY, open streams finish                 | the same, at once                  |
 * | plain TLS, an upgraded one | –                                           | closed at once                     |
 *
 * Requests of a peer that is no longer trusted are interrupted after `drainMs` (default 30 s).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';

import type { Clock, Scheduled } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { DISTRUSTED_MS, type IsDistrusted, type Peer } from './trust.js';

type SecureSocket = Socket & Peer;

interface DrainOptions {
  readonly drainMs: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** A connection of HTTP/1 or plain TLS. */
interface Connection {
  /** Requests in flight. */
  requests: number;
  /** Whether the next response is the last one. */
  isEnding: boolean;
  /** Whether it is closed after the response, whatever the headers of the response say. */
  isDistrusted: boolean;
}

/** See the table at the top of this file. */
export class ConnectionDrain {
  readonly #server: Server;
  readonly #options: DrainOptions;
  readonly #connections = new Map<SecureSocket, Connection>();
  readonly #sessions = new Set<ServerHttp2Session>();
  /** Whether the connection was made before the last change. */
  readonly #retired = new WeakSet<Socket | ServerHttp2Session>();
  readonly #timers = new Set<Scheduled>();
  /** By remote end: connections in a handshake, which the authorities at its beginning may wrongly admit. */
  readonly #handshakes = new Map<string, IsDistrusted | undefined>();
  #followsRequests = false;

  constructor(server: Server, options: DrainOptions) {
    this.#server = server;
    this.#options = options;
    server.on('connection', this.#onHandshake);
    server.on('session', this.#onSession);
    // Runs before the listeners of HTTP and of the application.
    server.prependListener('secureConnection', this.#onConnection);
  }

  /** Ends every connection that is open now, each at a random time. */
  retire(): void {
    const { random, drainMs } = this.#options;
    if (drainMs === undefined) return;
    for (const session of this.#unretired(this.#sessions))
      this.#later(random() * drainMs, () => session.close());
    for (const socket of this.#unretired(this.#connections.keys())) {
      const connection = this.#connections.get(socket);
      if (connection) this.#later(random() * drainMs, () => (connection.isEnding = true));
    }
  }

  /** Ends the connections whose peer is no longer trusted. */
  distrust(isDistrusted: IsDistrusted): void {
    for (const end of this.#handshakes.keys()) this.#handshakes.set(end, isDistrusted);
    const sessions = [...this.#sessions].filter(({ socket }) => isDistrusted(socket as SecureSocket));
    for (const session of sessions) session.close();
    const sockets = [...this.#connections.keys()].filter((socket) => isDistrusted(socket));
    for (const socket of sockets) this.#endSoon(socket);
    if (sessions.length + sockets.length === 0) return;
    this.#later(this.#options.drainMs ?? DISTRUSTED_MS, () => {
      for (const connection of [...sessions, ...sockets]) connection.destroy();
    });
  }

  /** Adds a session that may be older than this object. It ends if its peer is no longer trusted. */
  adopt(session: ServerHttp2Session, isDistrusted: IsDistrusted): void {
    if (this.#sessions.has(session)) return;
    this.#onSession(session);
    if (isDistrusted(session.socket as SecureSocket)) session.destroy();
  }

  close(): void {
    this.#server.off('connection', this.#onHandshake);
    this.#server.off('secureConnection', this.#onConnection);
    this.#server.off('session', this.#onSession);
    this.#server.off('request', this.#onRequest);
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  #endSoon(socket: SecureSocket): void {
    const connection = this.#connections.get(socket);
    if (connection && connection.requests > 0) connection.isEnding = connection.isDistrusted = true;
    else socket.destroySoon();
  }

  *#unretired<T extends Socket | ServerHttp2Session>(connections: Iterable<T>): Generator<T> {
    for (const connection of connections) {
      if (this.#retired.has(connection)) continue;
      this.#retired.add(connection);
      yield connection;
    }
  }

  #later(delayMs: number, end: () => void): void {
    if (delayMs === 0) {
      end();
      return;
    }
    const timer = this.#options.clock.schedule(
      () => {
        this.#timers.delete(timer);
        end();
      },
      delayMs,
      { ref: false },
    );
    this.#timers.add(timer);
  }

  readonly #onHandshake = (socket: Socket): void => {
    const end = remoteEnd(socket);
    this.#handshakes.set(end, undefined);
    socket.once('close', () => this.#handshakes.delete(end));
  };

  readonly #onConnection = (socket: TLSSocket): void => {
    const isDistrusted = this.#handshakes.get(remoteEnd(socket));
    this.#handshakes.delete(remoteEnd(socket));
    if (isDistrusted?.(socket)) socket.destroy();
    // Its session is ended instead.
    if (socket.alpnProtocol === 'h2') return;
    this.#followRequests();
    this.#connections.set(socket, { requests: 0, isEnding: false, isDistrusted: false });
    socket.once('close', () => this.#connections.delete(socket));
  };

  /** Only with HTTP/1: on an HTTP/2 server such a listener turns each stream into a request. */
  #followRequests(): void {
    if (this.#followsRequests) return;
    this.#followsRequests = true;
    this.#server.prependListener('request', this.#onRequest);
  }

  readonly #onSession = (session: ServerHttp2Session): void => {
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
  };

  readonly #onRequest = ({ httpVersionMajor, socket }: IncomingMessage, response: ServerResponse): void => {
    const connection = httpVersionMajor === 1 ? this.#connections.get(socket as SecureSocket) : undefined;
    if (!connection) return;
    if (connection.isEnding) response.setHeader('Connection', 'close');
    connection.requests += 1;
    response.once('close', () => {
      connection.requests -= 1;
      if (connection.isDistrusted && connection.requests === 0) socket.destroySoon();
    });
  };
}

function remoteEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`;
}
