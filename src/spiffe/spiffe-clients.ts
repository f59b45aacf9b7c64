import type { Agent, AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';

import type { Agent as UndiciAgent, Dispatcher } from 'undici';

import { systemClock } from '../core/clock.js';
import { describe, matching, required, resolveOptions } from '../core/options.js';
import { httpsAgent } from '../tls/https-agent.js';
import type { TlsFiles } from '../tls/tls-files.js';
import { loadUndici, rotatingDispatcher } from '../tls/undici-dispatcher.js';
import type { Peer } from '../tls/trust.js';
import type { SpiffeFolder } from './spiffe-folder.js';
import type { SpiffeId } from './spiffe-id.js';
import { refusalOf } from './verify-peer.js';

/** Which servers a client talks to. */
export interface SpiffeClientOptions {
  /** Whether the client may talk to the server with this ID. */
  readonly authorize: (id: SpiffeId) => boolean;
}

/** The check of `authorize`. */
export const AUTHORIZE = {
  authorize: required(
    matching<SpiffeClientOptions['authorize'] | undefined>(
      undefined,
      'a function of a SPIFFE ID',
      (value) => typeof value === 'function',
    ),
  ),
};

/**
 * Creates an agent for `https.request()` and others. It presents the identity of the folder, and talks only to servers
 * that the bundle of their own trust domain verifies and `authorize` accepts; host names are not compared. After a
 * change, new requests use new connections.
 * @param agentOptions options of `https.Agent`.
 * @throws {TypeError} for a wrong folder or option.
 */
export function spiffeAgent(
  folder: SpiffeFolder,
  options: SpiffeClientOptions,
  agentOptions?: AgentOptions,
): Agent {
  const verify = verifierOf('spiffeAgent', folder, options);
  const settings = { ...agentOptions, rejectUnauthorized: false, maxCachedSessions: 0 };
  const agent = httpsAgent(folder as unknown as TlsFiles, settings) as ConnectingAgent;
  const connect = agent.createConnection.bind(agent);
  const guard = (socket: Duplex | undefined): Duplex | undefined =>
    socket?.prependOnceListener('secureConnect', () => {
      const error = verify(socket as Duplex & Peer);
      if (error) socket.destroy(error);
    });
  agent.createConnection = (given, onCreated) =>
    guard(
      // The verification happens here, whatever options a request has.
      connect({ ...given, rejectUnauthorized: false }, (error, socket) => onCreated(error, guard(socket))),
    );
  return agent;
}

/** Members of `https.Agent` that its types lack. */
interface ConnectingAgent extends Agent {
  createConnection(
    options: object,
    onCreated: (error: Error | null, socket?: Duplex) => void,
  ): Duplex | undefined;
}

/**
 * Resolves to a dispatcher for `fetch()` and `undici.request()` that does the same as `spiffeAgent`.
 * @param agentOptions options of undici's `Agent`; `connect` must not be a function.
 * @throws {TlsError} (rejects) if the folder is not usable.
 * @throws {PackageError} (rejects) if `undici` is not installed.
 */
export async function spiffeDispatcher(
  folder: SpiffeFolder,
  options: SpiffeClientOptions,
  agentOptions: UndiciAgent.Options = {},
): Promise<Dispatcher> {
  const verify = verifierOf('spiffeDispatcher', folder, options);
  const undici = await loadUndici();
  return rotatingDispatcher(undici, folder as unknown as TlsFiles, agentOptions, (connectOptions) => {
    const connector = undici.buildConnector({
      ...connectOptions,
      rejectUnauthorized: false,
      maxCachedSessions: 0,
    });
    return (given, callback) => {
      connector(given, (...[error, socket]) => {
        if (error) {
          callback(error, null);
          return;
        }
        const refused = verify(socket as Socket & Peer);
        if (refused) {
          socket.destroy();
          callback(refused, null);
        } else callback(null, socket);
      });
    };
  });
}

/** Returns why a server is refused. */
function verifierOf(
  owner: string,
  folder: SpiffeFolder,
  options: SpiffeClientOptions,
): (socket: Peer) => Error | undefined {
  mustBeFolder(owner, folder);
  const { authorize } = resolveOptions(owner, options, AUTHORIZE);
  return (socket) =>
    refusalOf(socket, {
      bundles: folder.current?.bundles,
      authorize,
      role: 'server',
      now: systemClock.now(),
    });
}

/** @throws {TypeError} when it is no `SpiffeFolder`, whichever copy of this package it is from. */
export function mustBeFolder(owner: string, folder: unknown): void {
  if ((Object(folder) as { readonly kind?: unknown }).kind === 'SpiffeFolder') return;
  throw new TypeError(`${owner}: folder must be a SpiffeFolder, got ${describe(folder)}`);
}
