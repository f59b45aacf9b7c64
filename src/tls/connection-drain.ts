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

import type { Clock } from '../core/clock.js';

/** How long the requests of a connection that has to end may take by default. */
export const DRAIN_MS = 30_000;

interface DrainOptions {
  readonly drainMs: number;
  readonly clock: Clock;
}

/** A connection whose handshake is done. */
interface Connection {
  /** The session, if it is older than the drain. */
  readonly peer: Socket | ServerHttp2Session;
  session?: ServerHttp2Session;
  readonly inFlight: Set<ServerResponse>;
  /** Whether the responses in flight are the last ones. */
  isEnding: boolean;
}

/** A message of the channel of Node.js for each HTTP/1 request, before any listener of the server is called. */
interface RequestStart {
  readonly socket: Socket;
  readonly response: ServerResponse;
}

const REQUEST_START = 'http.server.request.start';
/** A message of Node.js for each accepted socket, before any listener of its server is called. */
const ACCEPTED = 'net.server.socket';

/** How many times a CA has been removed from a server of this thread. */
let removals = 0;
/**
 * How many there were when a handshake began: Node.js does not say which accepted socket a secured one belongs to, but
 * calls back in the context in which the handshake began, also for each HTTP/2 stream.
 */
const beganAfter = new AsyncLocalStorage<number>();
const onHandshake = (): void => beganAfter.enterWith(removals);

/** Counts a removal. Whatever begins from now on comes after it. */
export function countRemoval(): number {
  removals += 1;
  return removals;
}

/** Whether the handshake of the connection that is being handled began before this removal. */
export function isEarlier(removal: number): boolean {
  return (beganAfter.getStore() ?? 0) < removal;
}

/** Follows also the handshakes of servers that have no `ConnectionDrain` yet. */
export function followHandshakes(): void {
  unsubscribe(ACCEPTED, onHandshake);
  subscribe(ACCEPTED, onHandshake);
}

/** See the table at the top of this file. Has no listener by which Node.js would serve requests differently. */
export class ConnectionDrain {
  readonly #server: Server;
  readonly #options: DrainOptions;
  readonly #connections = new Set<Connection>();
  /** The member of a socket that holds its connection. The socket of an HTTP/2 session is a proxy of the real one. */
  readonly #key = Symbol('connection');
  /** The last removal of a CA. */
  #removal = 0;

  constructor(server: Server, options: DrainOptions) {
    this.#server = server;
    this.#options = options;
    // Before the listeners that begin the handshake, of HTTP, and of the application.
    server.prependListener('connection', onHandshake);
    server.prependListener('secureConnection', this.#onConnection);
    server.on('session', this.#onSession);
    subscribe(REQUEST_START, this.#onRequest);
  }

  /** Ends every connection whose handshake began before this removal. Returns how many are open. */
  end(removal: number): number {
    this.#removal = removal;
    const ending = [...this.#connections];
    for (const connection of ending) end(connection);
    const { clock, drainMs } = this.#options;
    // Also if the server is no longer followed then.
    clock.schedule(() => ending.forEach(({ peer }) => peer.destroy()), drainMs, { ref: false });
    return ending.length;
  }

  /** Adds a session that may be older than this object. */
  adopt(session: ServerHttp2Session): void {
    if (!this.#connectionOf(session.socket)) this.#onSession(session);
  }

  close(): void {
    this.#server.off('connection', onHandshake);
    this.#server.off('secureConnection', this.#onConnection);
    this.#server.off('session', this.#onSession);
    unsubscribe(REQUEST_START, this.#onRequest);
  }

  readonly #onConnection = (socket: TLSSocket): void => {
    // A handshake that began before this object existed counts as earlier.
    if (isEarlier(this.#removal)) socket.destroy();
    this.#add(socket, socket);
  };

  readonly #onSession = (session: ServerHttp2Session): void => {
    const connection = this.#connectionOf(session.socket) ?? this.#add(session.socket, session);
    connection.session = session;
  };

  readonly #onRequest = (message: unknown): void => {
    const { socket, response } = message as RequestStart;
    const connection = this.#connectionOf(socket);
    if (!connection) return;
    // It was sent in one packet with the end of the last request.
    if (connection.isEnding) socket.destroy();
    connection.inFlight.add(response);
    response.once('close', () => {
      connection.inFlight.delete(response);
      if (connection.isEnding && connection.inFlight.size === 0) socket.destroySoon();
    });
  };

  #add(socket: Socket, peer: Connection['peer']): Connection {
    const connection: Connection = { peer, inFlight: new Set(), isEnding: false };
    Object.assign(socket, { [this.#key]: connection });
    this.#connections.add(connection);
    peer.once('close', () => this.#connections.delete(connection));
    return connection;
  }

  #connectionOf(socket: Socket): Connection | undefined {
    return (socket as unknown as Readonly<Record<symbol, Connection | undefined>>)[this.#key];
  }
}

function end(connection: Connection): void {
  connection.isEnding = true;
  const { peer, session, inFlight } = connection;
  const last = [...inFlight].at(-1);
  if (session) session.close();
  else if (!last) peer.destroy();
  else {
    if (!last.headersSent) last.setHeader('Connection', 'close');
    // A further request is not even read.
    const { req } = last;
    if (req.complete) req.socket.pause();
    else req.once('end', () => req.socket.pause());
  }
}
