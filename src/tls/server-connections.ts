/**
 * Which connections of a server belong to an earlier generation, and how they end. A generation begins when a CA is removed;
 * a connection belongs to the one in which its handshake began.
 *
 * | connection of an earlier one | what happens to it                                                              |
 * |------------------------------|---------------------------------------------------------------------------------|
 * | in its handshake             | is destroyed when the handshake is done                                         |
 * | HTTP/1, response in flight   | the last one has `Connection: close`, then it is destroyed                      |
 * | HTTP/1, idle                 | is destroyed                                                                    |
 * | HTTP/2                       | gets GOAWAY; open streams finish, new ones are refused                          |
 * | plain TLS, upgraded          | is destroyed                                                                    |
 *
 * What is still open after `drainMs` is destroyed. Whatever else such a connection brings reaches no listener:
 *
 * | event of an earlier one                       | instead of the listeners                                       |
 * |-----------------------------------------------|----------------------------------------------------------------|
 * | `secureConnection`, and `session` after it    | the connection is destroyed                                    |
 * | `request` and its variants, of a new request  | its body is read and dropped, so that a client that leaves is  |
 * | `upgrade`, `connect`                          | noticed; the responses before it are finished                  |
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';

import type { Clock } from '../core/clock.js';

/** How long the requests of a connection that has to end may take by default. */
export const DRAIN_MS = 30_000;

type Emit = (event: string | symbol, ...args: unknown[]) => boolean;
type Listener = (...args: unknown[]) => void;

/** A connection whose handshake is done. */
interface Connection {
  readonly socket: TLSSocket;
  session?: ServerHttp2Session;
  readonly inFlight: Set<ServerResponse>;
  /** By WebSocket or CONNECT. Responses may still be in flight. */
  isUpgraded: boolean;
  isEnding: boolean;
}

/** The member of a socket that holds its connection. The socket of an HTTP/2 session is a proxy of the real one. */
const CONNECTION = Symbol('connection');

const known = new WeakMap<Server, ServerGenerations>();

/** The generations of this server, which is followed from the first call on, as long as it lives. */
export function generationsOf(server: Server): ServerGenerations {
  const generations = known.get(server) ?? new ServerGenerations(server);
  known.set(server, generations);
  return generations;
}

class ServerGenerations {
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #current: Server;

  constructor(server: Server) {
    this.#server = server;
    this.#current = this.#newGeneration();
    this.#beginHandshakes();
    this.#interceptEvents();
  }

  /**
   * Begins a generation, and ends the connections of the earlier ones. Returns how many; those that are ending already are
   * not counted again. To be called in the same turn as `setSecureContext()`.
   */
  endEarlier(drainMs: number, clock: Clock): number {
    this.#current = this.#newGeneration();
    const ending = [...this.#connections].filter(({ isEnding }) => !isEnding);
    forEachAlone(ending, end);
    // Also if the server is no longer followed then.
    const destroy = (): void => forEachAlone(ending, ({ socket }) => socket.destroy());
    clock.schedule(destroy, drainMs, { ref: false });
    return ending.length;
  }

  /**
   * A generation is an object that inherits from the server, and that Node.js takes for the server during a handshake. So
   * the handshake is that of its generation, however late a callback comes.
   */
  #newGeneration(): Server {
    const server = this.#server;
    const emit: Emit = (event, ...args) => {
      if (event !== 'secureConnection') return (server.emit as Emit)(event, ...args);
      const socket = args[0] as TLSSocket;
      // From now on the real one, as Node.js sets it for HTTP/1.
      Object.assign(socket, { server });
      if (generation === this.#current) return (server.emit as Emit)(event, socket);
      socket.destroy();
      return true;
    };
    const generation = Object.create(server, { emit: { value: emit } }) as Server;
    return generation;
  }

  /** Replaces the listener of Node.js that begins a handshake by one that does so for the current generation. */
  #beginHandshakes(): void {
    const server = this.#server;
    // The first and only one of a new server. No roots are loaded for an empty list of CAs.
    const [begin] = createServer({ ca: [] }).listeners('connection') as Listener[];
    const beginInGeneration = (...args: unknown[]): void => begin?.apply(this.#current, args);
    // A server that reads the header of a proxy first has it at an event of its own.
    for (const event of server.eventNames()) {
      const listeners = server.rawListeners(event) as Listener[];
      if (!begin || !listeners.includes(begin)) continue;
      server.removeAllListeners(event);
      for (const listener of listeners)
        server.on(event as string, listener === begin ? beginInGeneration : listener);
    }
  }

  /** An own `emit()`, because a listener could not keep an event from the others. */
  #interceptEvents(): void {
    const server = this.#server;
    const own = Object.getOwnPropertyDescriptor(server, 'emit')?.value as Emit | undefined;
    const isKept = this.#keeps.bind(this);
    const emit = function (this: Server, event: string | symbol, ...args: unknown[]): boolean {
      if (isKept(event, args)) return true;
      // Tracing replaces that of the prototype at any time.
      const inherited = (Object.getPrototypeOf(server) as { readonly emit: Emit }).emit;
      return Reflect.apply(own ?? inherited, this, [event, ...args]);
    };
    Object.defineProperty(server, 'emit', { value: emit, configurable: true, writable: true });
  }

  /** Takes note of an event. True if it is kept from the listeners. */
  #keeps(event: string | symbol, [first, second]: readonly unknown[]): boolean {
    switch (event) {
      case 'secureConnection':
        this.#add(first as TLSSocket);
        return false;
      case 'session': {
        const session = first as ServerHttp2Session;
        const connection = connectionOf(session.socket);
        if (connection) connection.session = session;
        return false;
      }
      case 'request':
      case 'checkContinue':
      case 'checkExpectation':
        return keepsRequest(first as IncomingMessage | undefined, second as ServerResponse);
      case 'upgrade':
      case 'connect':
        return keepsUpgrade(second as Duplex | undefined);
      default:
        return false;
    }
  }

  #add(socket: TLSSocket): void {
    // It is emitted again by an application that looks at the connection first, or hands it to another server.
    if (connectionOf(socket)) return;
    const connection: Connection = { socket, inFlight: new Set(), isUpgraded: false, isEnding: false };
    Object.defineProperty(socket, CONNECTION, { value: connection });
    this.#connections.add(connection);
    socket.once('close', () => this.#connections.delete(connection));
  }
}

function connectionOf(socket: Duplex | undefined): Connection | undefined {
  return (socket as { readonly [CONNECTION]?: Connection } | undefined)?.[CONNECTION];
}

function keepsRequest(request: IncomingMessage | undefined, response: ServerResponse): boolean {
  const connection = request?.httpVersionMajor === 1 ? connectionOf(request.socket) : undefined;
  if (!connection) return false;
  const { inFlight, socket } = connection;
  // A listener of `checkContinue` emits `request` for the same response.
  if (inFlight.has(response)) return false;
  if (connection.isEnding) {
    request?.resume();
    return true;
  }
  inFlight.add(response);
  response.once('close', () => {
    inFlight.delete(response);
    if (connection.isEnding && inFlight.size === 0) socket.destroySoon();
  });
  return false;
}

function keepsUpgrade(socket: Duplex | undefined): boolean {
  const connection = connectionOf(socket);
  if (!connection || !socket) return false;
  connection.isUpgraded = true;
  if (!connection.isEnding) return false;
  // Node.js has left the socket to the listener.
  socket.on('error', () => {}).resume();
  return true;
}

function end(connection: Connection): void {
  connection.isEnding = true;
  const { socket, session, inFlight, isUpgraded } = connection;
  const last = [...inFlight].at(-1);
  if (session) session.close();
  else if (!last || isUpgraded) socket.destroy();
  else if (!last.headersSent) last.setHeader('Connection', 'close');
}

/** Methods of an application may throw: one connection that fails to end holds up no other. */
function forEachAlone(connections: readonly Connection[], work: (connection: Connection) => void): void {
  for (const connection of connections) {
    try {
      work(connection);
    } catch {
      // It ends after its responses, or after `drainMs`.
    }
  }
}
