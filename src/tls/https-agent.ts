import { Agent, type AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { RequestOptions } from 'node:https';

import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';

/**
 * Creates an agent for `https.request()`, axios and others. It trusts the CA bundle of the files, and presents their
 * certificate, if they have one. After a change, new requests use new connections; requests in flight finish on
 * the old ones, which are then closed. The first request starts the files; the caller has to close them.
 *
 * A request fails with a `TlsError` while there is no usable set.
 * @param options options of `https.Agent`; `ca`, `cert` and `key` are replaced by those of the files, if they have
 * them.
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
  (this: Agent, options: ConnectionOptions) => Duplex
>;

/** The options as `http.Agent` passes them, with the key of the session cache. */
type ConnectionOptions = RequestOptions & { readonly _agentKey?: string };

/**
 * The key of the pool stays the same when the set changes, because Node.js computes it again when a connection ends,
 * and must then find the connection and the waiting requests. Outdated connections are therefore destroyed:
 *
 * | connection             | a change     | it becomes free                                       |
 * |------------------------|--------------|-------------------------------------------------------|
 * | of the current set     | –            | is reused                                             |
 * | of another set, idle   | is destroyed | –                                                     |
 * | of another set, in use | stays        | is destroyed; a waiting request gets a new connection |
 */
class TlsFilesAgent extends Agent {
  readonly #files: TlsFiles;
  /** The set with which each connection was made. */
  readonly #madeWith = new WeakMap<object, string>();

  constructor(files: TlsFiles, options?: AgentOptions) {
    super(options);
    this.#files = files;
    files.on('change', this.#onChange);
    // Runs before the listener of Node.js, which ignores destroyed connections.
    this.prependListener('free', this.#onFree);
  }

  override createConnection(options: ConnectionOptions, onCreated: OnCreated): Duplex | undefined {
    const { current } = this.#files;
    if (current) return this.#connect(current, options);
    this.#files.get().then(
      (credentials) => onCreated(null, this.#connect(credentials, options)),
      (error: unknown) => onCreated(error as Error),
    );
    return undefined;
  }

  override destroy(): void {
    this.#files.off('change', this.#onChange);
    super.destroy();
  }

  #connect(credentials: TlsCredentials, options: ConnectionOptions): Duplex {
    const { digest } = credentials;
    // Sessions of another set are not resumed.
    const _agentKey = `${options._agentKey ?? ''}:${digest}`;
    const socket = PROTOTYPE.createConnection.call(this, { ...options, ...credentials.options, _agentKey });
    this.#madeWith.set(socket, digest);
    return socket;
  }

  readonly #onChange = (): void => {
    for (const idle of Object.values(this.freeSockets)) idle?.forEach((socket) => socket.destroy());
  };

  readonly #onFree = (socket: Duplex): void => {
    if (this.#madeWith.get(socket) !== this.#files.current?.digest) socket.destroy();
  };
}
