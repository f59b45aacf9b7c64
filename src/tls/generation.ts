/**
 * Decides which generation a connection belongs to, and what ends when a CA is removed. Each set that trusts less than
 * the one before begins a generation: it lacks a CA, or revokes a certificate that the one before does not. A
 * connection keeps the generation in which its handshake began, as a property of the connection itself. Servers,
 * clients and pools each have generations of their own.
 *
 * | connection                | a set trusts less                                            | `drainMs` later |
 * |---------------------------|--------------------------------------------------------------|-----------------|
 * | in its handshake          | its generation is over: its server or client refuses it      | –               |
 * | in use                    | nothing new begins on it; its user ends it, and it is counted| is destroyed    |
 * | that is ending already    | is not ended or counted again                                | as before       |
 * | that fails to end         | holds up no other                                            | is destroyed    |
 *
 * | whose                                                     | what is ended, and how    |
 * |-----------------------------------------------------------|---------------------------|
 * | `serveTls()`, `grpcServerCredentials()`                   | `server-connections.ts`   |
 * | `httpsAgent()`                                            | `https-agent.ts`          |
 * | `undiciDispatcher()`: pools, and connections              | `undici-dispatcher.ts`    |
 * | `followDefaultCa()`: the global pools of the process      | `default-pools.ts`        |
 * | `grpcChannelCredentials()`                                | the package `grpc`        |
 */
import type { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

import { systemClock, type Clock } from '../core/ports/clock.js';

/** How long what is in flight on a connection that has to end may take by default, ms. */
export const DRAIN_MS = 30_000;

/** What peers are verified with. */
export interface Trust {
  readonly authorities: readonly X509Certificate[];
  readonly revocation: { readonly revoked: ReadonlySet<string> } | undefined;
}

/** Whether a set lacks a CA of the one before, or revokes a certificate that the one before does not. */
export function trustsLess(previous: Trust | undefined, current: Trust): boolean {
  if (!previous) return false;
  const before = previous.revocation?.revoked;
  if ([...(current.revocation?.revoked ?? [])].some((certificate) => !before?.has(certificate))) return true;
  // Without a bundle, the roots of Node.js were trusted.
  if (previous.authorities.length === 0) return current.authorities.length > 0;
  const kept = new Set(current.authorities.map(({ fingerprint256 }) => fingerprint256));
  return previous.authorities.some(({ fingerprint256 }) => !kept.has(fingerprint256));
}

export interface Generation {
  readonly isOver: boolean;
}

/** A connection, or a pool of them. */
interface Endable {
  destroy(): unknown;
}

/** How a connection whose client's certificate expires ends. */
export interface Ending {
  /** Default 30,000. */
  readonly drainMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** The generation of a connection whose client's certificate has expired. */
export const OVER: Generation = { isOver: true };

/** The generations of one server or client. */
export class Generations<Connection extends Endable> {
  /** For connections from now on. */
  ending: Ending = {};
  readonly #inUse = new Set<Connection>();
  #current = { isOver: false };

  /** That of a handshake which begins now. */
  get current(): Generation {
    return this.#current;
  }

  /** Returns a function that forgets the connection, to be called when it has closed. */
  add(connection: Connection): () => void {
    this.#inUse.add(connection);
    return () => void this.#inUse.delete(connection);
  }

  /** Whether no connection is open that has to end when a CA is removed. */
  get isEmpty(): boolean {
    return this.#inUse.size === 0;
  }

  /** Does something with each connection that is not ending. One that throws holds up no other. */
  forEach(work: (connection: Connection) => unknown): void {
    forEachAlone(this.#inUse, work);
  }

  /** Less is trusted. Returns how many connections end. */
  endAll(end?: (connection: Connection) => unknown, drainMs?: number, clock?: Clock): number {
    this.#current.isOver = true;
    this.#current = { isOver: false };
    const ending = [...this.#inUse];
    this.#inUse.clear();
    return endEach(ending, end, drainMs, clock);
  }
}

/** Ends connections, even if the server or client that made them is closed meanwhile. Returns how many. */
export function endEach<Connection extends Endable>(
  connections: readonly Connection[],
  end: (connection: Connection) => unknown = () => {},
  drainMs = DRAIN_MS,
  clock: Clock = systemClock,
): number {
  forEachAlone(connections, end);
  const destroy = (): void => forEachAlone(connections, (connection) => connection.destroy());
  clock.schedule(destroy, drainMs, { ref: false });
  return connections.length;
}

/** Whether nothing of a request has been sent yet. */
export function isInHandshake(socket: Duplex): boolean {
  return socket instanceof TLSSocket && socket.getPeerFinished() === undefined;
}

function forEachAlone<Connection>(
  connections: Iterable<Connection>,
  work: (connection: Connection) => unknown,
): void {
  for (const connection of connections) {
    try {
      work(connection);
    } catch {
      // A method of the application. The connection ends after its responses, or after `drainMs`.
    }
  }
}
