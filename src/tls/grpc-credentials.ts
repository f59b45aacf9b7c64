/**
 * Credentials of `@grpc/grpc-js` that follow `TlsFiles`. Its own `FileWatcherCertificateProvider` polls, reads the
 * certificate and the key one after the other, and publishes `null` after a failed read, upon which servers drop
 * every connection. This provider publishes checked sets only, each at once, and never takes one back.
 */
import { rootCertificates } from 'node:tls';

import type * as grpc from '@grpc/grpc-js';
import type { ChannelCredentials, experimental, ServerCredentials, VerifyOptions } from '@grpc/grpc-js';

import { TlsError } from './tls-error.js';
import { flag, resolveOptions } from '../core/options.js';
import type { TlsCredentials } from './tls-credentials.js';
import type { TlsFiles } from './tls-files.js';
import { unavailable } from './tls-package.js';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** Options of `grpcServerCredentials`. */
export interface GrpcServerOptions {
  /** Whether clients have to show a certificate by the CA of the files. Default false. */
  readonly requireClientCertificate?: boolean | undefined;
}

/**
 * Credentials for `server.bindAsync()`. Resolves when there is a usable certificate. The files are started, and stay
 * yours to close.
 * @throws {TlsError} (rejects) when there is no usable certificate; `ERR_TLS_CA` when client certificates are required
 * and there is no CA bundle; `ERR_TLS_PACKAGE` when `@grpc/grpc-js` is not installed.
 */
export async function grpcServerCredentials(
  files: TlsFiles,
  options?: GrpcServerOptions,
): Promise<ServerCredentials> {
  const { requireClientCertificate } = resolveOptions('grpcServerCredentials', options, {
    requireClientCertificate: flag(false),
  });
  const { experimental } = await loadGrpc();
  const current = await files.get();
  mustHaveCertificate(files, current);
  if (requireClientCertificate && !current.ca) {
    throw new TlsError('ERR_TLS_CA', `Client certificates are required, and ${files.path} has no CA bundle`);
  }
  const provider = new TlsFilesProvider(files);
  // By the names of its parameters the CA comes first; what it does, and its types, have the identity first.
  return experimental.createCertificateProviderServerCredentials(
    provider,
    requireClientCertificate ? provider : null,
    requireClientCertificate,
  );
}

/**
 * Credentials for a gRPC client: trusts the CA bundle of the files, or the roots that Node comes with where there is
 * none, and shows their certificate if they have one. Connections made from now on use what is then current.
 * @throws {TlsError} (rejects) when the files are not usable; `ERR_TLS_PACKAGE` when `@grpc/grpc-js` is not installed.
 */
export async function grpcChannelCredentials(
  files: TlsFiles,
  verifyOptions?: VerifyOptions,
): Promise<ChannelCredentials> {
  const { experimental } = await loadGrpc();
  const { cert } = await files.get();
  const provider = new TlsFilesProvider(files);
  return experimental.createCertificateProviderChannelCredentials(
    provider,
    cert ? provider : null,
    verifyOptions ?? {},
  );
}

/** Passes each set to the listeners of grpc-js. */
class TlsFilesProvider implements experimental.CertificateProvider {
  readonly #files: TlsFiles;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();
  #isFollowing = false;

  constructor(files: TlsFiles) {
    this.#files = files;
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    this.#added((current) => this.#caListeners.has(listener) && tellCa(listener, current));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
    this.#removed();
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    this.#added((current) => this.#identityListeners.has(listener) && tellIdentity(listener, current));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
    this.#removed();
  }

  #added(tell: (current: TlsCredentials) => void): void {
    if (!this.#isFollowing) this.#files.on('change', this.#onChange);
    this.#isFollowing = true;
    // grpc-js expects the first update after the call: at that moment it has not registered the server yet.
    process.nextTick(() => this.#files.current && tell(this.#files.current));
  }

  #removed(): void {
    if (this.#caListeners.size + this.#identityListeners.size > 0) return;
    this.#files.off('change', this.#onChange);
    this.#isFollowing = false;
  }

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    // All in one turn of the event loop: no connection is made in between.
    for (const listener of this.#caListeners) tellCa(listener, current);
    for (const listener of this.#identityListeners) tellIdentity(listener, current);
  };
}

function tellCa(listener: CaListener, { ca }: TlsCredentials): void {
  listener({ caCertificate: ca ?? Buffer.from(rootCertificates.join('\n')) });
}

function tellIdentity(listener: IdentityListener, { cert, key }: TlsCredentials): void {
  if (cert && key) listener({ certificate: cert, privateKey: key });
}

function mustHaveCertificate(files: TlsFiles, { cert }: TlsCredentials): void {
  if (!cert)
    throw new TlsError('ERR_TLS_MISSING', `A server needs a certificate, and ${files.path} has none`);
}

function loadGrpc(): Promise<typeof grpc> {
  return import('@grpc/grpc-js').catch(unavailable('@grpc/grpc-js', '1.14 or later'));
}
