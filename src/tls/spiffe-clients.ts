import { X509Certificate } from 'node:crypto';
import type { Agent, AgentOptions } from 'node:https';

import type { Agent as UndiciAgent, Dispatcher } from 'undici';

import { resolveOptions } from '../core/options.js';
import { httpsAgent } from './https-agent.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { undiciDispatcher } from './undici-dispatcher.js';
import { AUTHORIZE, refusalOf, type SpiffePeerOptions } from './authorize-peer.js';
import { spiffeIdIn } from './spiffe-id.js';

/**
 * Creates an agent for `https.request()` and others. It presents the identity of the folder, and talks only to servers
 * that OpenSSL verifies with the bundle of its trust domain and `authorize` accepts; host names are not compared. After
 * a change, new requests use new connections.
 * @param agentOptions options of `https.Agent`.
 * @throws {TypeError} for a wrong folder or option.
 */
export function spiffeAgent(
  folder: TlsFiles,
  options: SpiffePeerOptions,
  agentOptions?: AgentOptions,
): Agent {
  // Options of an agent take precedence over those of a request.
  const verification = { session: undefined, ...verificationOf('spiffeAgent', folder, options) };
  return httpsAgent(folder, { ...agentOptions, ...verification });
}

/**
 * Resolves to a dispatcher for `fetch()` and `undici.request()` that does the same as `spiffeAgent`.
 * @param agentOptions options of undici's `Agent`; `connect` must not be a function.
 * @throws {TlsError} (rejects) if the folder is not usable.
 * @throws {PackageError} (rejects) if `undici` is not installed.
 */
export async function spiffeDispatcher(
  folder: TlsFiles,
  options: SpiffePeerOptions,
  agentOptions: UndiciAgent.Options = {},
): Promise<Dispatcher> {
  const verification = verificationOf('spiffeDispatcher', folder, options);
  const { connect } = agentOptions;
  const given = typeof connect === 'function' ? connect : { ...connect, ...verification };
  return undiciDispatcher(folder, { ...agentOptions, connect: given });
}

/** Sessions are not resumed, because Node.js does not check the identity of a server again. */
function verificationOf(owner: string, folder: TlsFiles, options: SpiffePeerOptions) {
  checkTlsFiles(owner, 'folder', folder);
  const { authorize } = resolveOptions(owner, options, AUTHORIZE);
  return {
    rejectUnauthorized: true,
    maxCachedSessions: 0,
    checkServerIdentity: (_host: string, { raw }: { readonly raw: Buffer }): Error | undefined =>
      refusalOf(() => spiffeIdIn(new X509Certificate(raw)), folder, authorize),
  };
}
