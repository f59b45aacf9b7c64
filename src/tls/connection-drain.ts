/**
 * Ends connections that were made before the certificate changed, without cutting a request short.
 *
 * | connection      | a change                         | its time has come                                     |
 * |-----------------|----------------------------------|-------------------------------------------------------|
 * | HTTP/1          | gets a random time within `drainMs` | the next response says `Connection: close`         |
 * | HTTP/2          | the same                         | `session.close()`: GOAWAY, open streams are finished  |
 *
 * An idle HTTP/1 connection is left to the server's `keepAliveTimeout`, because a request may be on its way.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Server } from 'node:tls';

import type { Clock, Scheduled } from '../core/clock.js';
import type { Random } from '../core/random.js';

/** A server of `node:https` or `node:http2`. */
export type DrainableServer = Server;

interface DrainOptions {
  readonly drainMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** The table at the head of this file. */
export class ConnectionDrain {
  readonly #server: DrainableServer;
  readonly #options: DrainOptions;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #ending = new WeakSet<Socket>();
  readonly #timers = new Set<Scheduled>();

  constructor(server: DrainableServer, options: DrainOptions) {
    this.#server = server;
    this.#options = options;
    server.on('secureConnection', this.#onConnection);
    server.on('session', this.#onSession);
    // Runs before the listener of the application.
    server.prependListener('request', this.#onRequest);
  }

  /** Ends every connection that is open now, each at its random time. */
  retire(): void {
    for (const session of this.#sessions)
      this.#later(() => this.#sessions.delete(session) && session.close());
    for (const socket of this.#sockets) {
      this.#sockets.delete(socket);
      this.#later(() => this.#ending.add(socket));
    }
  }

  close(): void {
    this.#server.off('secureConnection', this.#onConnection);
    this.#server.off('session', this.#onSession);
    this.#server.off('request', this.#onRequest);
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  #later(end: () => void): void {
    const { clock, random, drainMs } = this.#options;
    if (drainMs === 0) {
      end();
      return;
    }
    const timer = clock.schedule(
      () => {
        this.#timers.delete(timer);
        end();
      },
      random() * drainMs,
      { ref: false },
    );
    this.#timers.add(timer);
  }

  readonly #onConnection = (socket: Socket): void => {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  };

  readonly #onSession = (session: ServerHttp2Session): void => {
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
  };

  readonly #onRequest = ({ httpVersionMajor, socket }: IncomingMessage, response: ServerResponse): void => {
    if (httpVersionMajor === 1 && this.#ending.has(socket)) response.setHeader('Connection', 'close');
  };
}
