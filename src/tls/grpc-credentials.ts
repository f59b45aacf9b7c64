/**
 * Credentials for `@grpc/grpc-js` that follow `TlsFiles`. The `FileWatcherCertificateProvider` of grpc-js polls, reads
 * the certificate and the key one after the other, and publishes `null` after a failed read, which makes servers drop
 * every connection. This provider publishes only checked sets, each at once, and never withdraws one.
 */
import type { Socket } from 'node:net';
import { rootCertificates, type Server } from 'node:tls';

import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';

import type * as grpc from '@grpc/grpc-js';
import type {
  ChannelCredentials,
  experimental,
  ServerCredentials,
  ServerInterceptor,
  VerifyOptions,
} from '@grpc/grpc-js';

import { systemClock } from '../core/clock.js';
import { systemRandom } from '../core/random.js';
import { ConnectionDrain } from './connection-drain.js';
import { TlsError } from './tls-error.js';
import { flag, resolveOptions } from '../core/options.js';
import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { PackageError } from '../core/package-error.js';
import { distrustOf, type IsDistrusted, type Peer } from './trust.js';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** Options of `grpcServerCredentials`. */
export interface GrpcServerOptions {
  /** Whether clients must present a certificate that the CA bundle of the files has issued. Default false. */
  readonly requireClientCertificate?: boolean | undefined;
}

/**
 * Resolves to credentials for `server.bindAsync()`. Starts the files; the caller has to close them. If a later set has
 * no CA bundle, the last one stays in use for client certificates. When a CA is removed, connections of clients that
 * only this CA verified get GOAWAY; their calls in flight are answered.
 * @throws {TlsError} (rejects) if there is no usable certificate; `ERR_TLS_CA` if client certificates are required
 * and there is no CA bundle.
 * @throws {PackageError} (rejects) if `@grpc/grpc-js` is not installed.
 */
export async function grpcServerCredentials(
  files: TlsFiles,
  options?: GrpcServerOptions,
): Promise<ServerCredentials> {
  checkTlsFiles('grpcServerCredentials', 'files', files);
  const { requireClientCertificate } = resolveOptions('grpcServerCredentials', options, {
    requireClientCertificate: flag(false),
  });
  const { experimental, ServerInterceptingCall } = await loadGrpc();
  const current = await files.get();
  mustHaveCertificate(files, current);
  if (requireClientCertificate && !current.ca) {
    throw new TlsError('ERR_TLS_CA', `Client certificates are required, but ${files.path} has no CA bundle`);
  }
  const provider = new TlsFilesProvider(files, current.ca);
  // The names of the parameters put the CA first, but the implementation and the types put the identity first.
  const credentials = experimental.createCertificateProviderServerCredentials(
    provider,
    requireClientCertificate ? provider : null,
    requireClientCertificate,
  );
  if (!requireClientCertificate) return credentials;
  return experimental.createServerCredentialsWithInterceptors(credentials, [
    endDistrusted(provider, ServerInterceptingCall),
  ]);
}

/**
 * Resolves to credentials for a gRPC client. It trusts the CA bundle of the files (without one: the roots of Node.js),
 * and presents their certificate if they have one. Each new connection uses the current set. When a CA is removed,
 * connections to servers that only this CA verified are closed, and their calls fail with `UNAVAILABLE`.
 * Starts the files; the caller has to close them.
 * @throws {TlsError} (rejects) if the files are not usable.
 * @throws {PackageError} (rejects) if `@grpc/grpc-js` is not installed.
 */
export async function grpcChannelCredentials(
  files: TlsFiles,
  verifyOptions?: VerifyOptions,
): Promise<ChannelCredentials> {
  checkTlsFiles('grpcChannelCredentials', 'files', files);
  const { experimental } = await loadGrpc();
  const { cert } = await files.get();
  const provider = new TlsFilesProvider(files);
  const credentials = experimental.createCertificateProviderChannelCredentials(
    provider,
    cert ? provider : null,
    verifyOptions ?? {},
  );
  return closeDistrusted(provider, credentials);
}

/** grpc-js exposes neither its servers nor their connections, except for the connection of a call. */
function endDistrusted(
  provider: TlsFilesProvider,
  ServerInterceptingCall: typeof grpc.ServerInterceptingCall,
): ServerInterceptor {
  const drains = new Map<Server, ConnectionDrain>();
  let isDistrusted: IsDistrusted = () => false;
  provider.onRemoved((changed) => {
    isDistrusted = changed;
    for (const drain of drains.values()) drain.distrust(changed);
  });
  const drainOf = (server: Server): ConnectionDrain => {
    const known = drains.get(server);
    if (known) return known;
    const options = { drainMs: undefined, clock: systemClock, random: systemRandom };
    const drain = new ConnectionDrain(server, options);
    drains.set(server, drain);
    server.once('close', () => {
      drains.delete(server);
      drain.close();
    });
    return drain;
  };
  return (_method, call) => {
    const { stream } = call as unknown as { readonly stream?: ServerHttp2Stream };
    const session = stream?.session as ServerHttp2Session | undefined;
    if (session && !session.destroyed) {
      const { server } = session.socket as unknown as { readonly server: Server };
      // It may have been connected before the server was known.
      drainOf(server).adopt(session, isDistrusted);
    }
    return new ServerInterceptingCall(call);
  };
}

/** grpc-js does not say which connections are idle, nor does it end one gracefully. */
function closeDistrusted(provider: TlsFilesProvider, credentials: ChannelCredentials): ChannelCredentials {
  const sockets = new Set<Socket & Peer>();
  let isDistrusted: IsDistrusted = () => false;
  provider.onRemoved((changed) => {
    isDistrusted = changed;
    for (const socket of sockets) if (isDistrusted(socket)) socket.destroy();
  });
  const createConnector = credentials._createSecureConnector.bind(credentials);
  credentials._createSecureConnector = (...args) => {
    const connector = createConnector(...args);
    const connect = connector.connect.bind(connector);
    connector.connect = async (socket) => {
      const connected = await connect(socket);
      const secured = connected.socket as Socket & Peer;
      sockets.add(secured);
      secured.once('close', () => sockets.delete(secured));
      // The handshake may have begun before the change.
      if (isDistrusted(secured)) secured.destroy();
      return connected;
    };
    return connector;
  };
  return credentials;
}

/** Passes each set to the listeners of grpc-js. */
class TlsFilesProvider implements experimental.CertificateProvider {
  readonly #files: TlsFiles;
  /** Used while the files have no CA bundle. */
  #otherCa: Buffer;
  readonly #keepsCa: boolean;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();
  #onRemoved: ((isDistrusted: IsDistrusted) => void) | undefined;
  /** The authorities of the last set with a CA bundle. */
  #authorities: TlsCredentials['authorities'] = [];
  #isFollowing = false;

  /**
   * @param ca the CA bundle of a server. If a later set has none, the last one stays in use, because with the roots of
   * Node.js the server would admit clients that a public authority has certified. Undefined for a client.
   */
  constructor(files: TlsFiles, ca?: Buffer) {
    this.#files = files;
    this.#authorities = files.current?.authorities ?? [];
    this.#keepsCa = ca !== undefined;
    this.#otherCa = ca ?? Buffer.from(rootCertificates.join('\n'));
  }

  /** Called when authorities were removed, after the listeners have received the new ones. */
  onRemoved(onRemoved: (isDistrusted: IsDistrusted) => void): void {
    this.#onRemoved = onRemoved;
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    this.#added((current) => this.#caListeners.has(listener) && this.#updateCa(listener, current));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
    this.#removed();
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    this.#added((current) => this.#identityListeners.has(listener) && updateIdentity(listener, current));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
    this.#removed();
  }

  #added(update: (current: TlsCredentials) => void): void {
    if (!this.#isFollowing) this.#files.on('change', this.#onChange);
    this.#isFollowing = true;
    // grpc-js expects the first update after this call returns, because only then has it registered the server.
    process.nextTick(() => this.#files.current && update(this.#files.current));
  }

  #removed(): void {
    if (this.#caListeners.size + this.#identityListeners.size > 0) return;
    this.#files.off('change', this.#onChange);
    this.#isFollowing = false;
  }

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    // Both in one turn of the event loop, so that no connection is made in between.
    for (const listener of this.#caListeners) this.#updateCa(listener, current);
    for (const listener of this.#identityListeners) updateIdentity(listener, current);
    this.#endRemoved(current);
  };

  #endRemoved({ ca, authorities }: TlsCredentials): void {
    if (!ca) return;
    const isDistrusted = distrustOf(this.#authorities, authorities);
    this.#authorities = authorities;
    if (isDistrusted) this.#onRemoved?.(isDistrusted);
  }

  #updateCa(listener: CaListener, { ca = this.#otherCa }: TlsCredentials): void {
    if (this.#keepsCa) this.#otherCa = ca;
    listener({ caCertificate: ca });
  }
}

function updateIdentity(listener: IdentityListener, { cert, key }: TlsCredentials): void {
  if (cert && key) listener({ certificate: cert, privateKey: key });
}

function mustHaveCertificate(files: TlsFiles, { cert }: TlsCredentials): void {
  if (!cert)
    throw new TlsError('ERR_TLS_MISSING', `A server needs a certificate, but ${files.path} has none`);
}

async function loadGrpc(): Promise<typeof grpc> {
  try {
    return await import('@grpc/grpc-js');
  } catch (cause) {
    throw new PackageError('@grpc/grpc-js', '1.14 or later', cause);
  }
}
