/**
 * Credentials for `@grpc/grpc-js` that follow `TlsFiles`. The `FileWatcherCertificateProvider` of grpc-js polls, reads
 * the certificate and the key one after the other, and publishes `null` after a failed read, upon which servers drop
 * every connection. This provider publishes only checked sets, each at once, and never withdraws one.
 */
import { rootCertificates } from 'node:tls';

import type * as grpc from '@grpc/grpc-js';
import type { ChannelCredentials, experimental, ServerCredentials, VerifyOptions } from '@grpc/grpc-js';

import { TlsError } from './tls-error.js';
import { flag, resolveOptions } from '../core/options.js';
import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { unavailable } from './tls-package.js';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** Options of `grpcServerCredentials`. */
export interface GrpcServerOptions {
  /** Whether clients must present a certificate that the CA bundle of the files has issued. Default false. */
  readonly requireClientCertificate?: boolean | undefined;
}

/**
 * Resolves to credentials for `server.bindAsync()`. Starts the files; the caller has to close them. If a later set has no
 * CA bundle, the last one stays in force for client certificates.
 * @throws {TlsError} (rejects) if there is no usable certificate; `ERR_TLS_CA` if client certificates are required
 * and there is no CA bundle; `ERR_TLS_PACKAGE` if `@grpc/grpc-js` is not installed.
 */
export async function grpcServerCredentials(
  files: TlsFiles,
  options?: GrpcServerOptions,
): Promise<ServerCredentials> {
  checkTlsFiles('grpcServerCredentials', 'files', files);
  const { requireClientCertificate } = resolveOptions('grpcServerCredentials', options, {
    requireClientCertificate: flag(false),
  });
  const { experimental } = await loadGrpc();
  const current = await files.get();
  mustHaveCertificate(files, current);
  if (requireClientCertificate && !current.ca) {
    throw new TlsError('ERR_TLS_CA', `Client certificates are required, and ${files.path} has no CA bundle`);
  }
  const provider = new TlsFilesProvider(files, current.ca);
  // Going by the names of the parameters the CA comes first, but the implementation and the types have the identity
  // first.
  return experimental.createCertificateProviderServerCredentials(
    provider,
    requireClientCertificate ? provider : null,
    requireClientCertificate,
  );
}

/**
 * Resolves to credentials for a gRPC client. It trusts the CA bundle of the files (without one: the roots of Node.js),
 * and presents their certificate if they have one. Each new connection uses the set that is current at that time.
 * Starts the files; the caller has to close them.
 * @throws {TlsError} (rejects) if the files are not usable; `ERR_TLS_PACKAGE` if `@grpc/grpc-js` is not installed.
 */
export async function grpcChannelCredentials(
  files: TlsFiles,
  verifyOptions?: VerifyOptions,
): Promise<ChannelCredentials> {
  checkTlsFiles('grpcChannelCredentials', 'files', files);
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
  /** In force while the files have no CA bundle. */
  #otherCa: Buffer;
  readonly #keepsCa: boolean;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();
  #isFollowing = false;

  /**
   * @param ca the CA bundle of a server. If a later set has none, the last one stays in force, because with the roots of
   * Node.js it would admit clients that a public authority has certified. Undefined for a client.
   */
  constructor(files: TlsFiles, ca?: Buffer) {
    this.#files = files;
    this.#keepsCa = ca !== undefined;
    this.#otherCa = ca ?? Buffer.from(rootCertificates.join('\n'));
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
    // In one turn of the event loop, so that no connection is made in between.
    for (const listener of this.#caListeners) this.#updateCa(listener, current);
    for (const listener of this.#identityListeners) updateIdentity(listener, current);
  };

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
    throw new TlsError('ERR_TLS_MISSING', `A server needs a certificate, and ${files.path} has none`);
}

function loadGrpc(): Promise<typeof grpc> {
  return import('@grpc/grpc-js').catch(unavailable('@grpc/grpc-js', '1.14 or later'));
}
