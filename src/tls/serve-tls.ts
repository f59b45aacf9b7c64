import { hash } from 'node:crypto';
import { Server as HttpsServer } from 'node:https';
import type { SecureContextOptions, Server } from 'node:tls';

import { Component, type ComponentEvents, type ComponentStatus } from '../core/component.js';
import { startOrClose } from '../core/lifecycle.js';
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
import { ConnectionDrain } from './connection-drain.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { digestOfSet, distrustOf, type IsDistrusted } from './trust.js';

/** Options of `serveTls`. All are optional, and `undefined` means the default. */
export interface ServeTlsOptions {
  /**
   * After a change, connections made with an older certificate end at random times within this period, ms; 0: at
   * once. HTTP/1 connections end with the response to their next request (`Connection: close`), HTTP/2 sessions with
   * GOAWAY; requests in flight are answered. Default: such connections stay open.
   *
   * For a client that only a removed CA verified, idle connections end at once, and requests in flight have this time,
   * by default 30 s.
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
  /** How many times the certificate has been set. */
  readonly changes: number;
}

/** Checks of `ServeTlsOptions`. */
export const SERVE_OPTIONS = {
  drainMs: optional(milliseconds(0)),
  ...PORT_OPTIONS,
};

/**
 * Options of `createServer()` that `setSecureContext()` would reset. Without them, the first rotation would
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

/** The same for one that the types of Node.js 20 lack. */
const NEW_OPTIONS = ['certificateCompression'] as const;

/** The same for those of the certificate, which stays if the files have none. */
const IDENTITY_OPTIONS = ['cert', 'key', 'pfx', 'passphrase'] as const;

/** A server whose certificate follows its files; created by `serveTls()`. */
export class ServedTls extends Component<ComponentEvents, ServedTlsStatus> {
  readonly #server: Server;
  readonly #files: TlsFiles;
  readonly #kept: SecureContextOptions;
  /** The certificate that `createServer()` was given, if any. */
  readonly #own: SecureContextOptions;
  readonly #drain: ConnectionDrain | undefined;
  readonly #isDistrusted: IsDistrusted | undefined;
  #served: TlsCredentials | undefined;
  /** The last set of the files with a CA bundle. */
  #trust: Pick<TlsCredentials, 'ca' | 'authorities'> | undefined;
  #changes = 0;

  /**
   * @param isDistrusted judges the peers after each change, if OpenSSL does not verify them.
   * @throws {TypeError | RangeError} for a wrong server or option.
   */
  constructor(server: Server, files: TlsFiles, options?: ServeTlsOptions, isDistrusted?: IsDistrusted) {
    mustBeServer('serveTls', server);
    checkTlsFiles('serveTls', 'files', files);
    const { drainMs, signal, clock, random } = resolveOptions('serveTls', options, SERVE_OPTIONS);
    super({ kind: 'TlsServer', name: `serveTls ${files.path}`, signal, clock });
    this.#server = server;
    this.#files = files;
    this.#kept = givenOptions(server, [...KEPT_OPTIONS, ...NEW_OPTIONS, 'ca']);
    this.#own = givenOptions(server, IDENTITY_OPTIONS);
    if (drainMs !== undefined) mustBeDrainable(server);
    this.#isDistrusted = isDistrusted;
    if (drainMs !== undefined || isDistrusted || demandsCertificate(server)) {
      this.#drain = new ConnectionDrain(server, { drainMs, clock, random });
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
    if (this.#isDistrusted) this.#drain?.distrust(this.#isDistrusted);
  };

  #use(credentials: TlsCredentials): void {
    // Without a CA bundle, Node.js would admit clients that a public authority has certified.
    const trust = credentials.ca || !this.#trust ? credentials : this.#trust;
    const { ca, authorities } = trust;
    const identity: SecureContextOptions = credentials.certificate ? credentials.options : this.#own;
    if (!identity.cert && !identity.pfx) throw this.#noCertificate();
    this.#server.setSecureContext({
      ...identity,
      ...(ca && { ca }),
      ...this.#kept,
      // Sessions that other authorities verified are not resumed, wherever the application keeps them.
      ...(demandsCertificate(this.#server) && { sessionIdContext: this.#sessionIdContext(authorities) }),
    });
    const isDistrusted = distrustOf(this.#trust?.authorities ?? [], authorities);
    this.#trust = trust;
    this.#served = credentials;
    this.#changes += 1;
    const isOurs = this.#kept.ca === undefined;
    if (isOurs && isDistrusted) this.#drain?.distrust(isDistrusted);
  }

  #noCertificate(): TlsError {
    const fix = 'name cert and key, or a directory with both, or give them to createServer()';
    const message = `serveTls: neither ${this.#files.path} nor the server has a certificate; ${fix}`;
    return new TlsError('ERR_TLS_MISSING', message);
  }

  /** At most 32 bytes. */
  #sessionIdContext(authorities: TlsCredentials['authorities']): string {
    return hash('sha256', `${this.#kept.sessionIdContext ?? ''}:${digestOfSet(authorities)}`).slice(0, 32);
  }
}

/**
 * Makes a server of `node:https`, `node:http2` or `node:tls` (and thus of Fastify, Express and others) use the
 * certificate in these files, now and after each change. New connections get the new certificate; open ones continue.
 * All other options of `createServer()` stay in effect, including a `ca` for client certificates: the CA bundle of the
 * files is used only if the server has no `ca`. If a later set has no bundle, the last one stays in use. When a CA is
 * removed from the bundle, connections of clients that only this CA verified end, and their sessions are not
 * resumed.
 *
 * Resolves when the server has its first certificate. To stop, close the result or the server. Starts the files; the
 * caller has to close them.
 * @throws {TlsError} (rejects) if there is no usable certificate; `files.ready()` waits for one. If the files are only a
 * CA bundle, the server needs a certificate of its own, which it keeps.
 * @throws {ClosedError} (rejects) if the server is closed meanwhile; the reason of the signal if that aborts.
 * @throws {TypeError | RangeError} (rejects) for a wrong server or option.
 */
export async function serveTls(
  server: Server,
  files: TlsFiles,
  options?: ServeTlsOptions,
): Promise<ServedTls> {
  return startOrClose(new ServedTls(server, files, options));
}

/** The options of `createServer()` with these names. */
function givenOptions(server: Server, names: readonly string[]): SecureContextOptions {
  const given = server as unknown as Readonly<Record<string, unknown>>;
  const present = names.filter((name) => given[name] !== undefined);
  return Object.fromEntries(present.map((name) => [name, given[name]]));
}

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED` for a server of `node:https` on Bun. */
export function mustBeServer(owner: string, server: unknown): asserts server is Server {
  if (hasMethods(server, ['setSecureContext', 'on'])) return;
  if (hasMethods(server, ['listen', 'on']) && 'bun' in process.versions) {
    const message =
      'serveTls: on Bun, a server of node:https cannot change its certificate; ' +
      'http2.createSecureServer({ allowHTTP1: true }) can, and also serves HTTP/1.1';
    throw new TlsError('ERR_TLS_UNSUPPORTED', message);
  }
  const wanted = 'a server of node:https, node:tls, or createSecureServer() of node:http2';
  throw new TypeError(`${owner}: server must be ${wanted}, got ${describe(server)}`);
}

function mustBeDrainable(server: Server): void {
  const isHttp2 = 'updateSettings' in server;
  if (!isHttp2 && !(server instanceof HttpsServer)) {
    throw new TypeError('serveTls: "drainMs" needs a server of node:https or node:http2');
  }
}

function demandsCertificate(server: Server): boolean {
  return (server as unknown as { readonly requestCert?: boolean }).requestCert === true;
}
