import { hash, randomBytes } from 'node:crypto';
import type { SecureContextOptions, Server } from 'node:tls';

import { Component, type ComponentEvents, type ComponentStatus } from '../core/lifecycle/component.js';
import { startOrClose } from '../core/lifecycle/lifecycle.js';
import {
  describe,
  hasMethods,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options/options.js';
import { dateOrNull, type Clock } from '../core/ports/clock.js';
import { processState } from '../core/process-state.js';
import { DRAIN_MS, trustsLess, type Trust } from './generation.js';
import { endConnections, followConnections } from './server-connections.js';
import { digestOfSet } from './certificates.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';

/** Options of `serveTls`. All are optional, and `undefined` means the default. */
export interface ServeTlsOptions {
  /** The name of the server in its status and telemetry. Default: `serveTls` and the path of the files. */
  readonly name?: string | undefined;
  /**
   * How long responses in flight may take when connections have to end, because a CA that verifies clients was removed,
   * or the certificate of a client was revoked or has expired, ms. Default 30,000.
   */
  readonly drainMs?: number | undefined;
  /** Stops following the files when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
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

const SERVE_OPTIONS = {
  name: nonEmptyString(undefined),
  drainMs: milliseconds(DRAIN_MS),
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
};

/**
 * Options of `createServer()` that `setSecureContext()` would reset. Without them, the first rotation would
 * silently allow older versions of TLS and other ciphers.
 */
const KEPT_OPTIONS = [
  'ca',
  'certificateCompression',
  'clientCertEngine',
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
];

/** The same for those of the certificate, which stays if the files have none. */
const IDENTITY_OPTIONS = ['cert', 'key', 'pfx', 'passphrase', 'privateKeyEngine', 'privateKeyIdentifier'];

/** A server whose certificate follows its files; created by `serveTls()`. */
export class ServedTls extends Component<ComponentEvents, ServedTlsStatus> {
  readonly #server: Server;
  readonly #files: TlsFiles;
  readonly #kept: SecureContextOptions;
  /** The certificate that `createServer()` was given, if any. */
  readonly #own: SecureContextOptions;
  /** Whether clients are verified with the CA bundle of the files. */
  readonly #isVerifying: boolean;
  /** Whether they are looked up in the revocation lists of the files. */
  readonly #isRevoking: boolean;
  readonly #drainMs: number;
  readonly #clock: Clock;
  #served: TlsCredentials | undefined;
  #changes = 0;

  /** @throws {TypeError | RangeError} for a wrong server or option. */
  constructor(server: Server, files: TlsFiles, options?: ServeTlsOptions) {
    mustBeServer(server);
    checkTlsFiles('serveTls', 'files', files);
    const { drainMs, name, signal, clock } = resolveOptions('serveTls', options, SERVE_OPTIONS);
    super({ kind: 'TlsServer', name: name ?? `serveTls ${files.path}`, signal, clock });
    this.#server = server;
    this.#files = files;
    this.#kept = givenOptions(server, KEPT_OPTIONS);
    this.#own = givenOptions(server, IDENTITY_OPTIONS);
    this.#isVerifying = demandsCertificate(server) && this.#kept.ca === undefined;
    this.#isRevoking = demandsCertificate(server) && this.#kept.crl === undefined;
    this.#drainMs = drainMs;
    this.#clock = clock;
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
    if (this.lifetime.ended) return;
    this.#use(credentials);
    this.#files.on('change', this.#onChange);
  }

  protected override onClose(): void {
    this.#files.off('change', this.#onChange);
    this.#server.off('close', this.#onServerClosed);
  }

  readonly #onServerClosed = (): void => void this.close();

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    try {
      this.#use(current);
    } catch (error) {
      // The server keeps its current certificate.
      this.fail(error);
    }
  };

  #use(credentials: TlsCredentials): void {
    const server = this.#server;
    const identity: SecureContextOptions = credentials.certificate ? credentials.options : this.#own;
    if (!identity.cert && !identity.pfx) throw this.#noCertificate();
    if (this.#isVerifying && !credentials.ca) throw this.#noAuthority();
    if (this.#isVerifying && identity.pfx) throw this.#otherAuthorities();
    const previous = given().get(server);
    const trust: Trust = {
      authorities: this.#isVerifying ? credentials.authorities : [],
      revocation: this.#isRevoking ? credentials.revocation : undefined,
    };
    const isReduced = trustsLess(previous?.trust, trust);
    const era = isReduced ? randomBytes(8).toString('hex') : (previous?.era ?? '');
    const hasEra = this.#isVerifying || trust.revocation !== undefined;
    const session = hasEra ? { sessionIdContext: this.#sessionIdOf(trust, era) } : {};
    const ticketKeys = isReduced ? randomBytes(48) : ticketKeysOf(server);
    server.setSecureContext({ ...identity, ...credentials.options, ...this.#kept, ...session });
    if (ticketKeys) server.setTicketKeys(ticketKeys);
    given().set(server, { trust, era, options: { ...credentials.options, ...session } });
    this.#served = credentials;
    this.#changes += 1;
    if (!demandsCertificate(server)) return;
    followConnections(server, { drainMs: this.#drainMs, clock: this.#clock });
    if (isReduced) this.#files.reportEnded('serveTls', endConnections(server, this.#drainMs, this.#clock));
  }

  #noCertificate(): TlsError {
    const fix = 'name cert and key, or a directory with both, or give them to createServer()';
    const message = `serveTls: neither ${this.#files.path} nor the server has a certificate; ${fix}`;
    return new TlsError('ERR_TLS_MISSING', message);
  }

  #noAuthority(): TlsError {
    const why = 'with the roots of Node.js, any public authority could issue them';
    const message = `serveTls: clients are asked for certificates, but neither ${this.#files.path} nor the server has a CA bundle: ${why}; name one as "ca", or add ca.crt`;
    return new TlsError('ERR_TLS_CA', message);
  }

  /** A pfx may contain CAs, which Node.js does not tell. */
  #otherAuthorities(): TlsError {
    const why = `Node.js would trust clients of the CAs in it, beside the CA bundle of ${this.#files.path}`;
    const message = `serveTls: the server has a pfx of its own, and ${why}; give createServer() cert and key instead`;
    return new TlsError('ERR_TLS_CA', message);
  }

  /** Sessions that other authorities verified are not resumed, wherever the application keeps them. */
  #sessionIdOf({ authorities }: Trust, era: string): string {
    const id = hash('sha256', `${this.#kept.sessionIdContext ?? ''}:${digestOfSet(authorities)}:${era}`);
    // OpenSSL takes at most 32 bytes.
    return id.slice(0, 32);
  }
}

/**
 * Makes a server of `node:https`, `node:http2` or `node:tls` (and thus of Fastify, Express and others) use the
 * certificate in these files, now and after each change. New connections get the new certificate; open ones continue.
 * All other options of `createServer()` stay in effect, including a `ca` for client certificates: the CA bundle of the
 * files is used only if the server has no `ca`, and their revocation lists only if it has no `crl`. If a later set has
 * no bundle, the last one stays in use. When a CA is removed from the bundle that verifies clients, or a list has a new
 * entry, every connection made before ends, and no session from before is resumed: clients that are still trusted
 * connect again. When the certificate of a client expires, its connection ends in the same way.
 *
 * Resolves when the server has its first certificate; call it before `listen()`, because earlier connections are not
 * known. To stop, close the result or the server. Starts the files; the caller has to close them.
 * @throws {TlsError} (rejects) if there is no usable certificate; `files.ready()` waits for one. If the files are only
 * a CA bundle, the server needs a certificate of its own, which it keeps. `ERR_TLS_CA` if clients are asked for
 * certificates (`requestCert`), and neither the files nor the server (`ca`) have a CA bundle, or the server has a `pfx`
 * whose CAs would be trusted beside it.
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

/** What a server was last given. It outlives the `ServedTls`. */
interface Given {
  readonly trust: Trust;
  /** Replaced when less is trusted, so that no session from before is resumed. */
  readonly era: string;
  /** For `setSecureContext()`, which makes them options of the server. */
  readonly options: SecureContextOptions;
}

const given = processState('servers', () => new WeakMap<Server, Given>());

/** `setSecureContext()` makes new keys for session tickets, but replicas may share the current ones. Bun has none. */
function ticketKeysOf(server: Server): Buffer | undefined {
  return 'bun' in process.versions ? undefined : server.getTicketKeys();
}

/** The options of `createServer()` with these names. */
function givenOptions(server: Server, names: readonly string[]): SecureContextOptions {
  const all = server as unknown as Readonly<Record<string, unknown>>;
  const ours = given().get(server)?.options as Readonly<Record<string, unknown>> | undefined;
  const present = names.filter((name) => all[name] !== undefined && all[name] !== ours?.[name]);
  return Object.fromEntries(present.map((name) => [name, all[name]]));
}

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED` for a server of `node:https` on Bun. */
function mustBeServer(server: unknown): asserts server is Server {
  if (hasMethods(server, ['setSecureContext', 'on'])) return;
  if (hasMethods(server, ['listen', 'on']) && 'bun' in process.versions) {
    const message =
      'serveTls: on Bun, a server of node:https cannot change its certificate; ' +
      'http2.createSecureServer({ allowHTTP1: true }) can, and also serves HTTP/1.1';
    throw new TlsError('ERR_TLS_UNSUPPORTED', message);
  }
  const wanted = 'a server of node:https, node:tls, or createSecureServer() of node:http2';
  throw new TypeError(`serveTls: server must be ${wanted}, got ${describe(server)}`);
}

function demandsCertificate(server: Server): boolean {
  return (server as unknown as { readonly requestCert?: boolean }).requestCert === true;
}
