import { Agent, type AgentOptions, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';

import { Generations, isInHandshake, trustsLess } from './generation.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkClientOptions, checkTlsFiles, type TlsFiles, type TlsFilesEvents } from './tls-files.js';

/**
 * Creates an agent for `https.request()`, axios and others. It trusts the CA bundle of the files, and presents their
 * certificate, if they have one. After a change, new requests use new connections; requests in flight finish on
 * the old ones, which are then closed. If the change removes a CA, they have 30 s. If a later set has no CA bundle, the
 * last one stays in use. The first request starts the files; the caller has to close them.
 *
 * A request fails with a `TlsError` while there is no usable set, and if a CA is removed during its handshake: it has
 * not been sent.
 * @param options options of `https.Agent`; `ca`, `cert`, `key` and `crl` are replaced by those of the files, if they
 * have them. Sessions are not resumed, so `maxCachedSessions` can only be 0.
 * @throws {TypeError} when `files` is not a `TlsFiles`; for `maxCachedSessions`, and for `secureContext`, `pfx` and
 * `session`, with which the files would not decide who is trusted. A request with these three fails in the same way.
 */
export function httpsAgent(files: TlsFiles, options: AgentOptions = {}): Agent {
  checkTlsFiles('httpsAgent', 'files', files);
  checkClientOptions('httpsAgent', options);
  if (options.maxCachedSessions) {
    const why = 'Node.js would resume a session of another set';
    throw new TypeError(`httpsAgent: "maxCachedSessions" must be 0: ${why}`);
  }
  return new TlsFilesAgent(files, options);
}

/** Also one to a proxy, until the tunnel is open. */
interface Connection {
  readonly socket: Duplex;
  /** Fails the request that waits for the connection. Node.js ignores it when the request has the connection. */
  readonly refuse: () => void;
  readonly destroy: () => unknown;
}

type OnCreated = (error: Error | null, socket?: Duplex) => void;

/** The original method, which Node.js documents for overriding. Calls back if it has to open a tunnel first. */
const PROTOTYPE = Agent.prototype as unknown as Record<
  'createConnection',
  (this: Agent, options: RequestOptions, onCreated: OnCreated) => Duplex | undefined
>;

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
 * | or behind a proxy's CONNECT   |              | error for the request |                                        |
 */
class TlsFilesAgent extends Agent {
  readonly #files: TlsFiles;
  readonly #generations = new Generations<Connection>();
  /** The set with which each connection was made. */
  readonly #sets = new WeakMap<Duplex, TlsCredentials>();

  constructor(files: TlsFiles, options?: AgentOptions) {
    // Node.js tells the sessions of two sets apart by a member of its own only.
    super({ ...options, maxCachedSessions: 0 });
    this.#files = files;
    // Runs before the listener of Node.js, which ignores destroyed connections.
    this.prependListener('free', this.#onFree);
  }

  override createConnection(options: RequestOptions, onCreated: OnCreated): Duplex | undefined {
    checkClientOptions('httpsAgent', options);
    const { current } = this.#files;
    if (current) return this.#connect(current, options, onCreated);
    // What Node.js returns then is the connection to the proxy, in which the request must not be sent.
    if ('proxyEnv' in this.options) {
      const message = 'With proxyEnv, start the files of httpsAgent() before the first request';
      queueMicrotask(() => onCreated(new TlsError('ERR_TLS_UNAVAILABLE', message)));
      return undefined;
    }
    this.#files.get().then(
      (credentials) => {
        const socket = this.#connect(credentials, options, onCreated);
        if (socket) onCreated(null, socket);
      },
      (error: unknown) => onCreated(error as Error),
    );
    return undefined;
  }

  #connect(credentials: TlsCredentials, options: RequestOptions, onCreated: OnCreated): Duplex | undefined {
    this.#files.off('change', this.#onChange).on('change', this.#onChange);
    const begunIn = this.#generations.current;
    const add = (socket: Duplex): (() => void) => {
      this.#sets.set(socket, credentials);
      const refuse = (): void => onCreated(outdated());
      const forget = this.#generations.add({ socket, refuse, destroy: () => socket.destroy() });
      // Upgraded connections and tunnels that are not open yet outlive `destroy()`.
      socket.once('close', () => {
        forget();
        if (this.#generations.isEmpty) this.#files.off('change', this.#onChange);
      });
      return forget;
    };
    const given = { ...options, ...credentials.options };
    let forgetProxy: (() => void) | undefined;
    const socket = PROTOTYPE.createConnection.call(this, given, (error, tunneled) => {
      if (begunIn.isOver) {
        tunneled?.destroy();
        onCreated(outdated());
        return;
      }
      if (tunneled) add(tunneled);
      forgetProxy?.();
      onCreated(error, tunneled);
    });
    if (socket) forgetProxy = add(socket);
    return socket;
  }

  readonly #onChange = ({ current, previous }: TlsFilesEvents['change'][0]): void => {
    const idle = new Set<Duplex | undefined>(Object.values(this.freeSockets).flat());
    this.#generations.forEach(({ socket }) => idle.has(socket) && socket.destroy());
    if (!trustsLess(previous, current)) return;
    this.#files.reportEnded('httpsAgent', this.#generations.endAll(end));
  };

  readonly #onFree = (socket: Duplex): void => {
    if (this.#sets.get(socket) !== this.#files.current) socket.destroy();
  };
}

function end({ socket, refuse }: Connection): void {
  if (isInHandshake(socket)) socket.destroy(outdated());
  refuse();
}

function outdated(): TlsError {
  const message =
    'A CA was removed or a certificate revoked during the handshake; the request was not sent, and can be repeated';
  return new TlsError('ERR_TLS_CA', message);
}
