import { constants } from 'node:crypto';
import type { Server, TLSSocket } from 'node:tls';

import { systemClock } from '../core/clock.js';
import { startOrClose } from '../core/lifecycle.js';
import { callback, divideOptions } from '../core/options.js';
import { mustBeServer, SERVE_OPTIONS, ServedTls, type ServeTlsOptions } from '../tls/serve-tls.js';
import type { TlsFiles } from '../tls/tls-files.js';
import type { Peer } from '../tls/trust.js';
import type { SpiffeFolder } from './spiffe-folder.js';
import type { SpiffeId } from './spiffe-id.js';
import { AUTHORIZE, mustBeFolder } from './spiffe-clients.js';
import { refusalOf } from './verify-peer.js';

/** Options of `serveSpiffe`; `authorize` is required. */
export interface ServeSpiffeOptions extends ServeTlsOptions {
  /** Whether the client with this ID is admitted. `spiffeIdOf(request.socket)` returns the ID of a client. */
  readonly authorize: (id: SpiffeId) => boolean;
  /** Called for each refused client, for a log. */
  readonly onRefused?: ((error: Error) => void) | undefined;
}

const OPTIONS = { ...AUTHORIZE, onRefused: callback<(error: Error) => void>(() => undefined) };

/**
 * Makes a server of `node:https`, `node:http2` or `node:tls` use the identity of the folder, and admit only clients
 * that the bundle of their trust domain verifies and `authorize` accepts. Call it before `listen()`. Sessions are
 * not resumed. When a trust bundle or one of its certificates is removed, connections end as in `serveTls`.
 *
 * Resolves when the server has its first certificate. To stop, close the result or the server. Starts the folder; the
 * caller has to close it.
 * @throws {TlsError} (rejects) if there is no usable identity.
 * @throws {TypeError | RangeError} (rejects) for a wrong server, folder or option.
 */
export async function serveSpiffe(
  server: Server,
  folder: SpiffeFolder,
  options: ServeSpiffeOptions,
): Promise<ServedTls> {
  mustBeServer('serveSpiffe', server);
  mustBeFolder('serveSpiffe', folder);
  const { own, rest: serving } = divideOptions('serveSpiffe', options, OPTIONS, Object.keys(SERVE_OPTIONS));
  const { authorize, onRefused } = own;
  const { clock = systemClock } = serving;
  const whyRefused = (peer: Peer): Error | undefined =>
    refusalOf(peer, { bundles: folder.current?.bundles, authorize, role: 'client', now: clock.now() });
  const settings = server as unknown as Record<
    'requestCert' | 'rejectUnauthorized' | 'secureOptions',
    unknown
  >;
  // In TLS 1.2 a client could present another certificate later, which nobody would verify.
  const { SSL_OP_NO_TICKET, SSL_OP_NO_RENEGOTIATION } = constants;
  settings.secureOptions = Number(settings.secureOptions ?? 0) | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION;
  const isDistrusted = (peer: Peer): boolean => whyRefused(peer) !== undefined;
  const served = new ServedTls(server, folder as unknown as TlsFiles, serving, isDistrusted);
  settings.requestCert = true;
  settings.rejectUnauthorized = false;
  // Runs before HTTP reads anything.
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const error = whyRefused(socket);
    if (!error) return;
    socket.destroy();
    onRefused(error);
  });
  return startOrClose(served);
}
