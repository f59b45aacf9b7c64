import { Server as HttpsServer } from 'node:https';
import type { SecureContextOptions, Server } from 'node:tls';

import { Component, type ComponentEvents, type ComponentStatus } from '../core/component.js';
import {
  describe,
  hasMethods,
  milliseconds,
  optional,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import { dateOrNull, type Clock } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { ConnectionDrain, type DrainableServer } from './connection-drain.js';
import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';

/** Options of `serveTls`. All may be left out, and `undefined` means the default. */
export interface ServeTlsOptions {
  /**
   * After a change, connections made with an older certificate end at random times within this period, ms; 0: at
   * once. HTTP/1 connections end with the response to their next request (`Connection: close`), HTTP/2 sessions with
   * GOAWAY; requests in flight are answered. Default: such connections stay open.
   */
  readonly drainMs?: number | undefined;
  /** Stops following the files when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Spreads the ends of connections. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

/** The status of `ServedTls`. Plain data without keys. */
export interface ServedTlsStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** SHA-256 of the certificate of new connections, as `AB:CD:…`; null before the first one. */
  readonly fingerprint256: string | null;
  /** When the certificate of new connections expires, epoch ms; null before the first one. */
  readonly expiresAt: number | null;
  /** How many times the certificate was set. */
  readonly changes: number;
}

const OPTIONS = {
  drainMs: optional(milliseconds(0)),
  ...PORT_OPTIONS,
};

/**
 * Options of `createServer()` that `setSecureContext()` would reset. Without them the first rotation would
 * silently allow older versions of TLS and other ciphers.
 */
const KEPT_OPTIONS = [
  'ciphers',
  'crl',
  'dhparam',
  'ecdhCurve',
  'honorCipherOrder',
  'maxVersion',
  'minVersion',
  'secureOptions',
  'secureProtocol',
  'sessionIdContext',
  'sessionTimeout',
  'sigalgs',
] as const satisfies readonly (keyof SecureContextOptions)[];

/** A server whose certificate follows its files; created by `serveTls()`. */
export class ServedTls extends Component<ComponentEvents, ServedTlsStatus> {
  readonly #server: Server;
  readonly #files: TlsFiles;
  readonly #kept: SecureContextOptions;
  readonly #drain: ConnectionDrain | undefined;
  #served: TlsCredentials | undefined;
  /** The last CA bundle of the files. */
  #ca: Buffer | undefined;
  #changes = 0;

  /** @throws {TypeError | RangeError} for a wrong server or option. */
  constructor(server: Server, files: TlsFiles, options?: ServeTlsOptions) {
    if (!hasMethods(server, ['setSecureContext', 'on'])) {
      const wanted = 'a server of node:https, node:tls, or createSecureServer() of node:http2';
      throw new TypeError(`serveTls: server must be ${wanted}, got ${describe(server)}`);
    }
    checkTlsFiles('serveTls', 'files', files);
    const { drainMs, signal, clock, random } = resolveOptions('serveTls', options, OPTIONS);
    super({ kind: 'TlsServer', name: `serveTls ${files.path}`, signal, clock });
    this.#server = server;
    this.#files = files;
    this.#kept = keptOptions(server);
    if (drainMs !== undefined) {
      this.#drain = new ConnectionDrain(drainable(server), { drainMs, clock, random });
    }
  }

  status(): ServedTlsStatus {
    return {
      name: this.name,
      state: this.lifecycleState,
      fingerprint256: this.#served?.fingerprint256 ?? null,
      expiresAt: dateOrNull(this.#served?.expiresAt),
      changes: this.#changes,
      lastError: this.lastError,
    };
  }

  protected override get purpose(): string {
    return 'serve TLS';
  }

  protected override async onStart(): Promise<void> {
    this.#server.once('close', this.#onServerClosed);
    const credentials = await this.#files.get();
    if (this.scope.ended) return;
    this.#use(credentials);
    this.#files.on('change', this.#onChange);
  }

  protected override onClose(): void {
    this.#files.off('change', this.#onChange);
    this.#server.off('close', this.#onServerClosed);
    this.#drain?.close();
  }

  readonly #onServerClosed = (): void => void this.close();

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    try {
      this.#use(current);
      this.#drain?.retire();
    } catch (error) {
      // The server keeps its current certificate.
      this.fail(error);
    }
  };

  #use(credentials: TlsCredentials): void {
    // Without any, Node.js would admit clients that a public authority has certified.
    const { ca = this.#ca } = credentials;
    this.#server.setSecureContext({ ...credentials.options, ...(ca && { ca }), ...this.#kept });
    this.#ca = ca;
    this.#served = credentials;
    this.#changes += 1;
  }
}

/**
 * Makes a server of `node:https`, `node:http2` or `node:tls` (and thus of Fastify, Express and others) use the
 * certificate in these files, now and after each change. New connections get the new certificate; open ones continue.
 * All other options of `createServer()` stay in force, including a `ca` for client certificates; the CA bundle of the
 * files is used only if the server has none; if a later set has no bundle, the last one stays in force.
 *
 * Resolves when the server has its first certificate. To stop, close the result or the server. Starts the files; the
 * caller has to close them.
 * @throws {TlsError} (rejects) if there is no usable certificate; `files.ready()` waits for one.
 * @throws {ClosedError} (rejects) if the server is closed meanwhile; the reason of the signal if that aborts.
 * @throws {TypeError | RangeError} (rejects) for a wrong server or option.
 */
export async function serveTls(
  server: Server,
  files: TlsFiles,
  options?: ServeTlsOptions,
): Promise<ServedTls> {
  const served = new ServedTls(server, files, options);
  try {
    await served.start();
  } catch (error) {
    await served.close();
    throw error;
  }
  return served;
}

function keptOptions(server: Server): SecureContextOptions {
  const given = server as unknown as Readonly<Record<string, unknown>>;
  const names = [...KEPT_OPTIONS, 'ca'].filter((name) => given[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, given[name]]));
}

function drainable(server: Server): DrainableServer {
  const isHttp2 = 'updateSettings' in server;
  if (isHttp2 || server instanceof HttpsServer) return server as DrainableServer;
  throw new TypeError('serveTls: "drainMs" needs a server of node:https or node:http2');
}
