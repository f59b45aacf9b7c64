import { Agent, type AgentOptions, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';

import { systemClock } from '../core/clock.js';
import { DRAIN_MS } from './connection-drain.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { Trust } from './trust.js';

/**
 * Creates an agent for `https.request()`, axios and others. It trusts the CA bundle of the files, and presents their
 * certificate, if they have one. After a change, new requests use new connections; requests in flight finish on
 * the old ones, which are then closed. If the change removes a CA, they have 30 s. If a later set has no CA bundle, the
 * last one stays in use. The first request starts the files; the caller has to close them.
 *
 * A request fails with a `TlsError` while there is no usable set, and if a CA is removed during its handshake: it has
 * not been sent.
 * @param options options of `https.Agent`; `ca`, `cert` and `key` are replaced by those of the files, if they have
 * them. Sessions are not resumed, so `maxCachedSessions` is 0.
 * @throws {TypeError} when `files` is not a `TlsFiles`.
 */
export function httpsAgent(files: TlsFiles, options?: AgentOptions): Agent {
  checkTlsFiles('httpsAgent', 'files', files);
  return new TlsFilesAgent(files, options);
}

/** Members of `http.Agent` that the types of Node.js lack. */
type OnCreated = (error: Error | null, socket?: Duplex) => void;

/** The original methods, which Node.js documents for overriding. */
const PROTOTYPE = Agent.prototype as unknown as Record<
  'createConnection',
  (this: Agent, options: RequestOptions) => Duplex
>;

interface Connection {
  /** The digest of the set with which it was made. */
  readonly set: string;
  isSecured: boolean;
}

/**
 * The key of the pool stays the same when the set changes, because Node.js computes it again when a connection ends,
 * and must then find the connection and the waiting requests. Outdated connections are therefore destroyed:
 *
 * | connection                    | a change     | a CA was removed      | it becomes free                        |
 * |-------------------------------|--------------|-----------------------|----------------------------------------|
 * | of the current set            | –            | –                     | is reused                              |
 * | of another set, idle          | is destroyed | is destroyed          | –                                      |
 * | of another set, in use        | stays        | is destroyed in 30 s  | is destroyed; a waiting request gets a |
 * |                               |              |                       | new connection                         |
 * | of another set, in handshake  | stays        | is destroyed, with an | is destroyed                           |
 * |                               |              | error for the request |                                        |
 */
class TlsFilesAgent extends Agent {
  readonly #files: TlsFiles;
  readonly #trust = new Trust();
  readonly #connections = new Map<Duplex, Connection>();
  #isFollowing = false;

  constructor(files: TlsFiles, options?: AgentOptions) {
    // Node.js would resume a session of another set, and tells the sets apart by a member of its own only.
    super({ ...options, maxCachedSessions: 0 });
    this.#files = files;
    // Runs before the listener of Node.js, which ignores destroyed connections.
    this.prependListener('free', this.#onFree);
  }

  override createConnection(options: RequestOptions, onCreated: OnCreated): Duplex | undefined {
    const { current } = this.#files;
    if (current) return this.#connect(current, options);
    this.#files.get().then(
      (credentials) => onCreated(null, this.#connect(credentials, options)),
      (error: unknown) => onCreated(error as Error),
    );
    return undefined;
  }

  /** As in Node.js, the agent can be used again. */
  override destroy(): void {
    this.#files.off('change', this.#onChange);
    this.#isFollowing = false;
    super.destroy();
  }

  #connect(credentials: TlsCredentials, options: RequestOptions): Duplex {
    this.#follow(credentials);
    const { digest } = credentials;
    const given = { ...options, ...this.#trust.optionsOf(credentials) };
    const socket = PROTOTYPE.createConnection.call(this, given);
    const connection = { set: digest, isSecured: false };
    this.#connections.set(socket, connection);
    socket.once('secureConnect', () => (connection.isSecured = true));
    socket.once('close', () => this.#connections.delete(socket));
    return socket;
  }

  #follow(current: TlsCredentials): void {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    this.#trust.update(current);
    this.#files.on('change', this.#onChange);
  }

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    const isRemoved = this.#trust.update(current);
    const earlier = [...this.#connections.keys()];
    if (isRemoved) this.#files.reportEnded('httpsAgent', earlier.length);
    for (const idle of Object.values(this.freeSockets)) idle?.forEach((socket) => socket.destroy());
    if (isRemoved) this.#end(earlier);
  };

  #end(earlier: readonly Duplex[]): void {
    for (const socket of earlier) {
      if (this.#connections.get(socket)?.isSecured) continue;
      const message = 'A CA was removed during the handshake; the request was not sent, and can be repeated';
      socket.destroy(new TlsError('ERR_TLS_CA', message));
    }
    systemClock.schedule(() => earlier.forEach((socket) => socket.destroy()), DRAIN_MS, { ref: false });
  }

  readonly #onFree = (socket: Duplex): void => {
    if (this.#connections.get(socket)?.set !== this.#files.current?.digest) socket.destroy();
  };
}
