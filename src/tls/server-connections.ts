/**
 * How the connections of a server end when a CA is removed (`generation.ts` says which), and each one when the
 * certificate of its client expires:
 *
 * | connection of an earlier generation | what happens to it                                              |
 * |-------------------------------------|-----------------------------------------------------------------|
 * | in its handshake                    | is destroyed when the handshake is done                         |
 * | HTTP/1, response in flight          | the last one has `Connection: close`, then it is destroyed      |
 * | HTTP/1, idle                        | is destroyed                                                    |
 * | HTTP/2                              | gets GOAWAY; open streams finish, new ones are refused          |
 * | plain TLS, upgraded                 | is destroyed                                                    |
 *
 * Whatever else such a connection brings reaches no listener:
 *
 * | event of an earlier generation                | instead of the listeners                                       |
 * |-----------------------------------------------|----------------------------------------------------------------|
 * | `secureConnection`, and `session` after it    | the connection is destroyed                                    |
 * | `request` and its variants, of a new request  | its body is read and dropped, so that a client that leaves is  |
 * | `upgrade`, `connect`                          | noticed; the responses before it are finished                  |
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';

import { hasMethods } from '../core/options/options.js';
import { systemClock, type Clock } from '../core/ports/clock.js';
import { processState } from '../core/process-state.js';
import { Alarm } from '../core/scheduling/alarm.js';
import { validityOf } from './certificates.js';
import { endEach, Generations, OVER, type Ending, type Generation } from './generation.js';

type Emit = (event: string | symbol, ...args: unknown[]) => boolean;
type Listener = (...args: unknown[]) => void;

/** A connection whose handshake is done. */
interface Connection {
  /** `OVER` once the certificate of the client has expired. */
  generation: Generation;
  readonly socket: TLSSocket;
  session?: ServerHttp2Session;
  readonly inFlight: Set<ServerResponse>;
  /** By WebSocket or CONNECT. Responses may still be in flight. */
  isUpgraded: boolean;
  destroy(): void;
}

interface Followed {
  readonly servers: WeakMap<Server, Generations<Connection>>;
  /** The member of a socket that holds its connection. The socket of an HTTP/2 session is a proxy of the real one. */
  readonly member: symbol;
}

const state = processState('connections', (): Followed => ({
  servers: new WeakMap(),
  member: Symbol('connection'),
}));

/** Follows the connections of a server from the first call on, as long as it lives. */
export function followConnections(server: Server, ending?: Ending): Generations<Connection> {
  const { servers } = state();
  const followed = servers.get(server);
  if (followed) {
    followed.ending = ending ?? followed.ending;
    return followed;
  }
  const generations = new Generations<Connection>();
  generations.ending = ending ?? {};
  servers.set(server, generations);
  beginHandshakes(server, generations);
  interceptEvents(server, generations);
  return generations;
}

/** Ends the connections of a server. Returns how many. To be called in the same turn as `setSecureContext()`. */
export function endConnections(server: Server, drainMs?: number, clock?: Clock): number {
  return followConnections(server).endAll(end, drainMs, clock);
}

/** Replaces the listener of Node.js that begins a handshake by one that does so for a stand-in of the server. */
function beginHandshakes(server: Server, generations: Generations<Connection>): void {
  // The first and only one of a new server. No roots are loaded for an empty list of CAs.
  const [begin] = createServer({ ca: [] }).listeners('connection') as Listener[];
  const beginFor = (...args: unknown[]): void => begin?.apply(standIn(server, generations), args);
  // A server that reads the header of a proxy first has it at an event of its own.
  for (const event of server.eventNames()) {
    const listeners = server.rawListeners(event) as Listener[];
    if (!begin || !listeners.includes(begin)) continue;
    server.removeAllListeners(event);
    for (const listener of listeners) server.on(event as string, listener === begin ? beginFor : listener);
  }
}

/**
 * What Node.js takes for the server during a handshake. It knows when the handshake began, however late a callback
 * comes.
 */
function standIn(server: Server, generations: Generations<Connection>): Server {
  const begunIn = generations.current;
  const emit: Emit = (event, ...args) => {
    if (event !== 'secureConnection') return (server.emit as Emit)(event, ...args);
    const socket = args[0] as TLSSocket;
    // From now on the real one, as Node.js sets it for HTTP/1.
    Object.assign(socket, { server });
    if (!begunIn.isOver) return (server.emit as Emit)(event, socket);
    socket.destroy();
    return true;
  };
  return Object.create(server, { emit: { value: emit } }) as Server;
}

/** An own `emit()`, because a listener could not keep an event from the others. */
function interceptEvents(server: Server, generations: Generations<Connection>): void {
  const own = Object.getOwnPropertyDescriptor(server, 'emit')?.value as Emit | undefined;
  const emit = function (this: Server, event: string | symbol, ...args: unknown[]): boolean {
    if (isKept(event, args, generations)) return true;
    // Tracing replaces that of the prototype at any time.
    const inherited = (Object.getPrototypeOf(server) as { readonly emit: Emit }).emit;
    return Reflect.apply(own ?? inherited, this, [event, ...args]);
  };
  Object.defineProperty(server, 'emit', { value: emit, configurable: true, writable: true });
}

/** False if it must not be used, because the certificate of the client has expired: OpenSSL resumes such a session. */
function add(socket: TLSSocket | undefined, generations: Generations<Connection>): boolean {
  // It is emitted again by an application that looks at the connection first, or hands it to another server, and perhaps
  // for something else.
  if (!socket || !hasMethods(socket, ['once', 'destroy']) || connectionOf(socket)) return true;
  const connection: Connection = {
    generation: generations.current,
    socket,
    inFlight: new Set(),
    isUpgraded: false,
    destroy: () => void socket.destroy(),
  };
  Object.defineProperty(socket, state().member, { value: connection });
  const forget = generations.add(connection);
  const { drainMs, clock = systemClock } = generations.ending;
  const expiry = new Alarm(clock, false, () => void isValid());
  const isValid = (): boolean => {
    const remainingMs = expiryOf(socket) - clock.now();
    if (remainingMs > 0) {
      if (remainingMs < Infinity) expiry.set(remainingMs);
      return true;
    }
    connection.generation = OVER;
    forget();
    endEach([connection], end, drainMs, clock);
    return false;
  };
  socket.once('close', () => {
    expiry.clear();
    forget();
  });
  return isValid();
}

/** When the certificate expires by which a client was admitted, epoch ms; `Infinity` if it has shown none. */
function expiryOf(socket: TLSSocket): number {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  const expiresAt = certificate ? validityOf(certificate).expiresAt : Infinity;
  return Number.isNaN(expiresAt) ? Infinity : expiresAt;
}

function connectionOf(socket: Duplex | undefined): Connection | undefined {
  return (socket as unknown as Readonly<Record<symbol, Connection | undefined>> | undefined)?.[
    state().member
  ];
}

/** Takes note of an event. True if it is kept from the listeners. */
function isKept(
  event: string | symbol,
  [first, second]: readonly unknown[],
  generations: Generations<Connection>,
): boolean {
  switch (event) {
    case 'secureConnection':
      return !add(first as TLSSocket | undefined, generations);
    case 'session': {
      const session = first as ServerHttp2Session | undefined;
      const connection = connectionOf(session?.socket);
      if (connection && session) connection.session = session;
      return false;
    }
    case 'request':
    case 'checkContinue':
    case 'checkExpectation':
      return isRequestKept(first as IncomingMessage | undefined, second as ServerResponse | undefined);
    case 'upgrade':
    case 'connect':
      return isUpgradeKept(second as Duplex | undefined);
    default:
      return false;
  }
}

function isRequestKept(request: IncomingMessage | undefined, response: ServerResponse | undefined): boolean {
  const connection = request?.httpVersionMajor === 1 ? connectionOf(request.socket) : undefined;
  if (!connection || !response) return false;
  const { inFlight, socket } = connection;
  // A listener of `checkContinue` emits `request` for the same response.
  if (inFlight.has(response)) return false;
  if (connection.generation.isOver) {
    request?.resume();
    return true;
  }
  inFlight.add(response);
  response.once('close', () => {
    inFlight.delete(response);
    if (connection.generation.isOver && inFlight.size === 0) socket.destroySoon();
  });
  return false;
}

function isUpgradeKept(socket: Duplex | undefined): boolean {
  const connection = connectionOf(socket);
  if (!connection || !socket) return false;
  connection.isUpgraded = true;
  if (!connection.generation.isOver) return false;
  // Node.js has left the socket to the listener.
  socket.on('error', () => {}).resume();
  return true;
}

function end({ socket, session, inFlight, isUpgraded }: Connection): void {
  const last = [...inFlight].at(-1);
  if (session) session.close();
  else if (!last || isUpgraded) socket.destroy();
  else if (!last.headersSent) last.setHeader('Connection', 'close');
}
