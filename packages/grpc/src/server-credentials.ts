import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:tls';

import { experimental, type ServerCredentials } from '@grpc/grpc-js';
import {
  checkNoLists,
  checkTlsFiles,
  endConnections,
  flag,
  followConnections,
  resolveOptions,
} from 'resilient-watcher/internal';
import { TlsError, type TlsFiles } from 'resilient-watcher/tls';

import { TlsFilesProvider } from './provider.js';

/** Options of `grpcServerCredentials`. */
export interface GrpcServerOptions {
  /** Whether clients must present a certificate that the CA bundle of the files has issued. Default false. */
  readonly requireClientCertificate?: boolean | undefined;
}

/**
 * Resolves to credentials for `server.bindAsync()`. Starts the files; the caller has to close them. If a later set has
 * no CA bundle, the last one stays in use for client certificates. When a CA is removed, every connection made before
 * gets GOAWAY; calls in flight are answered within 30 s, and clients that are still trusted connect again.
 * @throws {TlsError} (rejects) if there is no usable certificate; `ERR_TLS_CA` if client certificates are required
 * and there is no CA bundle; `ERR_TLS_UNSUPPORTED` if they are, and the files have revocation lists, which grpc-js does
 * not take.
 */
export async function grpcServerCredentials(
  files: TlsFiles,
  options?: GrpcServerOptions,
): Promise<ServerCredentials> {
  checkTlsFiles('grpcServerCredentials', 'files', files);
  const { requireClientCertificate } = resolveOptions('grpcServerCredentials', options, {
    requireClientCertificate: flag(false),
  });
  const current = await files.get();
  if (!current.cert)
    throw new TlsError('ERR_TLS_MISSING', `A server needs a certificate, but ${files.path} has none`);
  if (requireClientCertificate) checkNoLists('grpcServerCredentials', current);
  if (requireClientCertificate && !current.ca) {
    const message = `Client certificates are required, but ${files.path} has no CA bundle: name it as "ca", or add ca.crt`;
    throw new TlsError('ERR_TLS_CA', message);
  }
  const servers = new Set<Server>();
  const provider = new TlsFilesProvider(files, (isCaRemoved) => {
    if (!isCaRemoved || !requireClientCertificate) return;
    let connections = 0;
    for (const server of servers) connections += endConnections(server);
    files.reportEnded('grpcServerCredentials', connections);
  });
  // The names of the parameters put the CA first, but the implementation and the types put the identity first.
  const credentials = experimental.createCertificateProviderServerCredentials(
    provider,
    requireClientCertificate ? provider : null,
    requireClientCertificate,
  );
  if (requireClientCertificate) followServers(credentials, servers);
  return credentials;
}

/** A message of Node.js for each server that begins to listen. */
const LISTEN = 'tracing:net.server.listen:asyncStart';

/**
 * grpc-js does not expose its servers. In one turn, it asks the credentials for their options, creates a server with
 * them, and lets it listen.
 */
function followServers(credentials: ServerCredentials, servers: Set<Server>): void {
  const onListen = (message: unknown): void => {
    const { server } = message as { readonly server: Server };
    // From before its first connection on.
    followConnections(server);
    servers.add(server);
    server.once('close', () => servers.delete(server));
  };
  const optionsOf = credentials._getConstructorOptions.bind(credentials);
  credentials._getConstructorOptions = () => {
    subscribe(LISTEN, onListen);
    queueMicrotask(() => unsubscribe(LISTEN, onListen));
    return optionsOf();
  };
}
