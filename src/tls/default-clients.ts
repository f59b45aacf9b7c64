/** Connections of the clients that use Node's default CA list: the global agent, `fetch()` and undici. */
import type { X509Certificate } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { globalAgent } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import type { Clock, Scheduled } from '../core/clock.js';
import { TlsError } from './tls-error.js';
import { chainOf, DISTRUSTED_MS, type Peer } from './trust.js';

type SecureSocket = Socket & Peer & Pick<TLSSocket, 'isSessionReused'>;

/** The number of servers whose certificates are remembered. */
const MAX_SERVERS = 1_000;

/** Members of `http.Agent` that the types of Node.js lack. */
interface SessionCache {
  readonly _sessionCache?: { readonly list: readonly string[] };
  _evictSession?(key: string): void;
}

/** Messages of undici, both of `fetch()` and of the package. */
interface UndiciMessage {
  readonly request?: object;
  readonly socket?: SecureSocket;
  readonly connectParams?: Readonly<Record<'servername' | 'hostname' | 'port', unknown>>;
}

/** A connection of undici. */
interface UndiciConnection {
  /** The requests in flight. */
  readonly requests: Set<object>;
  /** The certificates of the peer; undefined if the session was resumed and its peer is not known. */
  readonly chain: readonly X509Certificate[] | undefined;
}

type IsDistrusted = (chain: readonly X509Certificate[]) => boolean;

/**
 * Closes connections that are no longer trusted: idle ones at once, others after their requests or 30 s later.
 *
 * A resumed session does not show the certificate that was verified. Therefore the sessions of the global agent are
 * discarded, and a resumed connection of undici is judged by the certificates that the server sent before.
 */
export class DefaultClients {
  readonly #clock: Clock;
  readonly #undici = new Map<SecureSocket, UndiciConnection>();
  readonly #socketOf = new WeakMap<object, SecureSocket>();
  /** The certificates that each server has sent to undici in its last full handshake. */
  readonly #shown = new Map<string, readonly X509Certificate[]>();
  #isDistrusted: IsDistrusted = () => false;
  /** Connections of the global agent that were in use when it was last called. */
  #suspects = new WeakSet<Socket>();
  readonly #timers = new Set<Scheduled>();
  readonly #listeners = {
    'undici:client:connected': (message: UndiciMessage) => this.#onConnected(message),
    'undici:client:sendHeaders': (message: UndiciMessage) => this.#onRequest(message),
    'undici:request:trailers': (message: UndiciMessage) => this.#onRequestEnd(message),
    'undici:request:error': (message: UndiciMessage) => this.#onRequestEnd(message),
  };

  constructor(clock: Clock) {
    this.#clock = clock;
    for (const [name, listener] of Object.entries(this.#listeners)) subscribe(name, listener as never);
    // Runs before the listener of Node.js, which ignores destroyed connections.
    globalAgent.prependListener('free', this.#onFree);
  }

  /** Connections whose handshake began before this call are judged when it ends. */
  distrust(isDistrusted: IsDistrusted): void {
    this.#isDistrusted = isDistrusted;
    const inUse = [...this.#endAgent(), ...this.#endUndici()];
    if (inUse.length === 0) return;
    const timer = this.#clock.schedule(
      () => {
        this.#timers.delete(timer);
        for (const socket of inUse) socket.destroy();
      },
      DISTRUSTED_MS,
      { ref: false },
    );
    this.#timers.add(timer);
  }

  close(): void {
    for (const [name, listener] of Object.entries(this.#listeners)) unsubscribe(name, listener as never);
    globalAgent.off('free', this.#onFree);
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#undici.clear();
    this.#shown.clear();
  }

  /** Returns the connections that are in use but no longer trusted. */
  #endAgent(): SecureSocket[] {
    for (const socket of socketsIn(globalAgent.freeSockets)) if (this.#mustEnd(socket)) socket.destroy();
    const inUse = socketsIn(globalAgent.sockets).filter(
      (socket) => !socket.authorized || this.#mustEnd(socket),
    );
    this.#suspects = new WeakSet(inUse);
    // Sessions that arrive later would be remembered.
    for (const socket of inUse) socket.removeAllListeners('session');
    const { _sessionCache: sessions } = globalAgent as SessionCache;
    for (const key of [...(sessions?.list ?? [])]) (globalAgent as SessionCache)._evictSession?.(key);
    return inUse.filter(({ authorized }) => authorized);
  }

  #endUndici(): SecureSocket[] {
    const distrusted = [...this.#undici].filter(
      ([, { chain }]) => chain === undefined || this.#isDistrusted(chain),
    );
    const isBusy = ([, { requests }]: (typeof distrusted)[0]): boolean => requests.size > 0;
    for (const [socket] of distrusted.filter((connection) => !isBusy(connection))) socket.destroy();
    return distrusted.filter(isBusy).map(([socket]) => socket);
  }

  #mustEnd(socket: SecureSocket): boolean {
    if (!socket.authorized) return false;
    const chain = chainOf(socket);
    // Connections that cannot be judged, such as resumed ones, end as well: a new connection costs little.
    return chain.length === 0 || this.#isDistrusted(chain);
  }

  readonly #onFree = (socket: Socket): void => {
    if (this.#suspects.has(socket) && this.#mustEnd(socket as SecureSocket)) socket.destroy();
  };

  #onConnected({ socket, connectParams }: UndiciMessage): void {
    // A connection of plain HTTP.
    if (!socket || !('authorized' in socket)) return;
    const { servername, hostname, port } = connectParams ?? {};
    const server = [servername, hostname, port].join();
    if (!socket.isSessionReused()) {
      this.#shown.delete(server);
      this.#shown.set(server, chainOf(socket));
      const [oldest] = this.#shown.keys();
      if (oldest !== undefined && this.#shown.size > MAX_SERVERS) this.#shown.delete(oldest);
    }
    const chain = this.#shown.get(server);
    this.#undici.set(socket, { requests: new Set(), chain });
    socket.once('close', () => this.#undici.delete(socket));
    if (!chain || !socket.authorized || !this.#isDistrusted(chain)) return;
    socket.removeAllListeners('session');
    // Without an error, undici would connect again and resume the session again.
    socket.destroy(new TlsError('ERR_TLS_CA', `The CA of ${String(hostname)} has been removed`));
  }

  #onRequest({ socket, request }: UndiciMessage): void {
    const connection = socket && this.#undici.get(socket);
    if (!connection || !request) return;
    connection.requests.add(request);
    this.#socketOf.set(request, socket);
  }

  #onRequestEnd({ request }: UndiciMessage): void {
    const socket = request && this.#socketOf.get(request);
    const connection = socket && this.#undici.get(socket);
    if (!connection) return;
    const { requests, chain } = connection;
    requests.delete(request);
    if (requests.size === 0 && chain && this.#isDistrusted(chain)) socket.destroy();
  }
}

function socketsIn(pools: NodeJS.ReadOnlyDict<Socket[]>): SecureSocket[] {
  return Object.values(pools).flatMap((sockets) => sockets ?? []) as SecureSocket[];
}
