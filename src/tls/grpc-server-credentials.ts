import type { Server } from 'node:tls';
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';

import type * as grpc from '@grpc/grpc-js';
import type { ServerCredentials, ServerInterceptor } from '@grpc/grpc-js';

import { systemClock } from '../core/clock.js';
import { flag, resolveOptions } from '../core/options.js';
import { ConnectionDrain, countRemoval, DRAIN_MS, followHandshakes, isEarlier } from './connection-drain.js';
import { loadGrpc, TlsFilesProvider } from './grpc-provider.js';
import { TlsError } from './tls-error.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';

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
  if (!current.cert)
    throw new TlsError('ERR_TLS_MISSING', `A server needs a certificate, but ${files.path} has none`);
  if (requireClientCertificate && !current.ca) {
    throw new TlsError('ERR_TLS_CA', `Client certificates are required, but ${files.path} has no CA bundle`);
  }
  const provider = new TlsFilesProvider(files);
  // The names of the parameters put the CA first, but the implementation and the types put the identity first.
  const credentials = experimental.createCertificateProviderServerCredentials(
    provider,
    requireClientCertificate ? provider : null,
    requireClientCertificate,
  );
  if (!requireClientCertificate) return credentials;
  return experimental.createServerCredentialsWithInterceptors(credentials, [
    endEarlier(files, provider, ServerInterceptingCall),
  ]);
}

/**
 * grpc-js exposes neither its servers nor their connections, except for the connection of a call. So a call of a
 * connection that should have ended is refused as one that was not begun, which clients send again by themselves.
 */
function endEarlier(
  files: TlsFiles,
  provider: TlsFilesProvider,
  ServerInterceptingCall: typeof grpc.ServerInterceptingCall,
): ServerInterceptor {
  const drains = new Map<Server, ConnectionDrain>();
  let removal = 0;
  followHandshakes();
  provider.onChanged((isCaRemoved) => {
    if (!isCaRemoved) return;
    removal = countRemoval();
    let connections = 0;
    for (const drain of drains.values()) connections += drain.end(removal);
    files.reportEnded('grpcServerCredentials', connections);
  });
  const drainOf = (server: Server): ConnectionDrain => {
    const known = drains.get(server);
    if (known) return known;
    const drain = new ConnectionDrain(server, { drainMs: DRAIN_MS, clock: systemClock });
    drain.end(removal);
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
    if (!stream || !session || session.destroyed) return new ServerInterceptingCall(call);
    const { server } = session.socket as unknown as { readonly server: Server };
    drainOf(server).adopt(session);
    if (!isEarlier(removal)) return new ServerInterceptingCall(call);
    // First GOAWAY, so that the call is not sent again on this connection.
    session.close();
    stream.close(constants.NGHTTP2_REFUSED_STREAM);
    return new ServerInterceptingCall(call, { start: () => {} });
  };
}
