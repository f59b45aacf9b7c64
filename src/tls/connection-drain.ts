/**
 * Ends the connections of a server whose handshakes began before a CA was removed, whoever the peer is.
 *
 * | connection                 | a CA was removed                                                                 |
 * |----------------------------|----------------------------------------------------------------------------------|
 * | in its handshake           | is destroyed when the handshake is done                                          |
 * | HTTP/1, response in flight | the last one has `Connection: close`; nothing more is read; then it is destroyed |
 * | HTTP/1, idle               | is destroyed                                                                     |
 * | HTTP/2                     | gets GOAWAY; open streams finish, new ones are refused                           |
 * | plain TLS, upgraded        | is destroyed                                                                     |
 *
 * What is still open after `drainMs` is destroyed.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';

import type { Clock, Scheduled } from '../core/clock.js';

/** How long the requests of a connection that has to end may take by default. */
export const DRAIN_MS = 30_000;

interface DrainOptions {
  readonly drainMs: number;
  readonly clock: Clock;
}

/** A connection of HTTP/1 or plain TLS. */
interface Connection {
  readonly inFlight: Set<ServerResponse>;
  /** Whether the responses in flight are the last ones. */
  isEnding: boolean;
}

/** A message of the channel of Node.js for each HTTP/1 request, before any listener of the server is called. */
interface RequestStart {
  readonly server: unknown;
  readonly socket: Socket;
  readonly response: ServerResponse;
}

const REQUEST_START = 'http.server.request.start';

/** See the table at the top of this file. Has no listener by which Node.js would serve requests differently. */
export class ConnectionDrain {
  readonly #server: Server;
  readonly #options: DrainOptions;
  readonly #connections = new Map<Socket, Connection>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #timers = new Set<Scheduled>();
  /** How many times a CA has been removed. */
  #generation = 0;
  /**
   * The generation in which a handshake began: Node.js does not say which accepted socket a secured one belongs to, but
   * calls back in the context in which the handshake began.
   */
  readonly #beganIn = new AsyncLocalStorage<number>();

  constructor(server: Server, options: DrainOptions) {
    this.#server = server;
    this.#options = options;
    // Before the listeners that begin the handshake, of HTTP, and of the application.
    server.prependListener('connection', this.#onHandshake);
    server.prependListener('secureConnection', this.#onConnection);
    server.on('session', this.#onSession);
    subscribe(REQUEST_START, this.#onRequest);
  }

  /** Ends every connection whose handshake began before this call. Returns how many are open. */
  end(): number {
    this.#generation += 1;
    const ending = [...this.#sessions, ...this.#connections.keys()];
    for (const session of this.#sessions) session.close();
    for (const [socket, connection] of this.#connections) end(socket, connection);
    this.#later(() => {
      for (const connection of ending) connection.destroy();
    });
    return ending.length;
  }

  /** Adds a session that may be older than this object. Returns whether it was not known. */
  adopt(session: ServerHttp2Session): boolean {
    if (this.#sessions.has(session)) return false;
    this.#onSession(session);
    return true;
  }

  close(): void {
    this.#server.off('connection', this.#onHandshake);
    this.#server.off('secureConnection', this.#onConnection);
    this.#server.off('session', this.#onSession);
    unsubscribe(REQUEST_START, this.#onRequest);
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  #later(end: () => void): void {
    const timer = this.#options.clock.schedule(
      () => {
        this.#timers.delete(timer);
        end();
      },
      this.#options.drainMs,
      { ref: false },
    );
    this.#timers.add(timer);
  }

  readonly #onHandshake = (): void => this.#beganIn.enterWith(this.#generation);

  readonly #onConnection = (socket: TLSSocket): void => {
    // A handshake that began before this object existed counts as earlier.
    if ((this.#beganIn.getStore() ?? 0) < this.#generation) socket.destroy();
    // Its session is ended instead.
    if (socket.alpnProtocol === 'h2') return;
    this.#connections.set(socket, { inFlight: new Set(), isEnding: false });
    socket.once('close', () => this.#connections.delete(socket));
  };

  readonly #onSession = (session: ServerHttp2Session): void => {
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
  };

  readonly #onRequest = (message: unknown): void => {
    const { server, socket, response } = message as RequestStart;
    const connection = server === this.#server ? this.#connections.get(socket) : undefined;
    if (!connection) return;
    // It was sent in one packet with the end of the last request.
    if (connection.isEnding) socket.destroy();
    connection.inFlight.add(response);
    response.once('close', () => {
      connection.inFlight.delete(response);
      if (connection.isEnding && connection.inFlight.size === 0) socket.destroySoon();
    });
  };
}

function end(socket: Socket, connection: Connection): void {
  connection.isEnding = true;
  const last = [...connection.inFlight].at(-1);
  if (!last) {
    socket.destroy();
    return;
  }
  if (!last.headersSent) last.setHeader('Connection', 'close');
  // A further request is not even read.
  const { req } = last;
  if (req.complete) socket.pause();
  else req.once('end', () => socket.pause());
}
