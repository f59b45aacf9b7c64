import { constants } from 'node:crypto';
import type { Server, TLSSocket } from 'node:tls';

import { startOrClose } from '../core/lifecycle.js';
import { callback, divideOptions } from '../core/options.js';
import { mustBeServer, SERVE_OPTIONS, ServedTls, type ServeTlsOptions } from './serve-tls.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { AUTHORIZE, refusalOf, type SpiffePeerOptions } from './authorize-peer.js';
import { spiffeIdOf } from './spiffe-id.js';

/** Options of `serveSpiffe`; `authorize` is required. */
export interface ServeSpiffeOptions extends ServeTlsOptions, SpiffePeerOptions {
  /** Called for each client that OpenSSL has verified and that is refused, for a log. */
  readonly onRefused?: ((error: Error) => void) | undefined;
}

const OPTIONS = { ...AUTHORIZE, onRefused: callback<(error: Error) => void>(() => undefined) };

/**
 * Makes a server of `node:https`, `node:http2` or `node:tls` use the identity of the folder, and admit only clients
 * that OpenSSL verifies with the bundle of its trust domain and `authorize` accepts. Call it before `listen()`.
 * `spiffeIdOf(request.socket)` returns the ID of a client. When a CA is removed from the bundle, connections end as in
 * `serveTls`.
 *
 * Resolves when the server has its first certificate. To stop, close the result or the server. Starts the folder; the
 * caller has to close it.
 * @throws {TlsError} (rejects) if there is no usable identity.
 * @throws {TypeError | RangeError} (rejects) for a wrong server, folder or option.
 */
export async function serveSpiffe(
  server: Server,
  folder: TlsFiles,
  options: ServeSpiffeOptions,
): Promise<ServedTls> {
  mustBeServer('serveSpiffe', server);
  checkTlsFiles('serveSpiffe', 'folder', folder);
  const { own, rest: serving } = divideOptions('serveSpiffe', options, OPTIONS, Object.keys(SERVE_OPTIONS));
  const { authorize, onRefused } = own;
  const settings = server as unknown as Record<string, unknown>;
  settings['requestCert'] = true;
  settings['rejectUnauthorized'] = true;
  settings['ca'] = undefined;
  // In TLS 1.2 a client could present another certificate later, which nobody would check.
  settings['secureOptions'] = Number(settings['secureOptions'] ?? 0) | constants.SSL_OP_NO_RENEGOTIATION;
  const served = new ServedTls(server, folder, serving);
  // Runs before HTTP reads anything.
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const error = refusalOf(() => spiffeIdOf(socket), folder, authorize);
    if (!error) return;
    socket.destroy();
    onRefused(error);
  });
  return startOrClose(served);
}
