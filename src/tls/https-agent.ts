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
 * @throws {TypeError} when `files` is no `TlsFiles`.
 */
export function httpsAgent(files: TlsFiles, options?: AgentOptions): Agent {
  checkTlsFiles('httpsAgent', 'files', files);
  return new TlsFilesAgent(files, options);
}

/** Members of `http.Agent` that the types of Node.js lack. */
type OnCreated = (error: Error | null, socket?: Duplex) => void;

/** The original methods, which Node.js documents for overriding. */
const PROTOTYPE = Agent.prototype as unknown as Record<
  'getName',
  (this: Agent, options?: RequestOptions) => string
> &
  Record<'keepSocketAlive', (this: Agent, socket: Duplex) => boolean> &
  Record<'createConnection', (this: Agent, options: RequestOptions) => Duplex>;

class TlsFilesAgent extends Agent {
  readonly #files: TlsFiles;
  /** The set under which each connection was made. */
  readonly #madeWith = new WeakMap<object, string>();

  constructor(files: TlsFiles, options?: AgentOptions) {
    super(options);
    this.#files = files;
    files.on('change', this.#onChange);
  }

  /**
   * The key of the pool and of the session cache. With the digest in it, connections and sessions of another set are
   * not used.
   */
  override getName(options?: RequestOptions): string {
    return `${PROTOTYPE.getName.call(this, options)}:${this.#files.current?.digest ?? ''}`;
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

  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#madeWith.get(socket) !== this.#files.current?.digest) return false;
    return PROTOTYPE.keepSocketAlive.call(this, socket);
  }

  override destroy(): void {
    this.#files.off('change', this.#onChange);
    super.destroy();
  }

  #connect(credentials: TlsCredentials, options: RequestOptions): Duplex {
    const socket = PROTOTYPE.createConnection.call(this, { ...options, ...credentials.options });
    this.#madeWith.set(socket, credentials.digest);
    return socket;
  }

  readonly #onChange = (): void => {
    for (const idle of Object.values(this.freeSockets)) idle?.forEach((socket) => socket.destroy());
  };
}
