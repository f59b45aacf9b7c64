/**
 * Connections of gRPC channels belong to the set under which they were made.
 *
 * | connection             | a change                                | a CA was removed                        |
 * |------------------------|-----------------------------------------|-----------------------------------------|
 * | in its handshake       | stays                                   | is destroyed when the handshake is done |
 * | that never had a call  | stays                                   | is destroyed                            |
 * | that has had a call    | takes no new call; closes after the     | the same, and is destroyed in 30 s      |
 * |                        | calls in flight                         |                                         |
 * | the same on Node.js 20 | stays                                   | is destroyed                            |
 */
import { subscribe } from 'node:diagnostics_channel';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';

import { experimental, type ChannelCredentials, type VerifyOptions } from '@grpc/grpc-js';
import { checkNoLists, checkTlsFiles, Generations } from 'resilient-watcher/internal';
import type { TlsFiles } from 'resilient-watcher/tls';

import { TlsFilesProvider } from './provider.js';

/**
 * Resolves to credentials for a gRPC client. It trusts the CA bundle of the files (without one: the roots of Node.js),
 * and presents their certificate if they have one. After a change, connections made before take no new call. When a CA
 * is removed, calls in flight have 30 s. Node.js 20 does not tell when a connection has calls: there, connections stay
 * after a change, and calls fail with `UNAVAILABLE` when a CA is removed.
 * Starts the files; the caller has to close them.
 * @throws {TlsError} (rejects) if the files are not usable; `ERR_TLS_UNSUPPORTED` if they have revocation lists, which
 * grpc-js does not take.
 */
export async function grpcChannelCredentials(
  files: TlsFiles,
  verifyOptions?: VerifyOptions,
): Promise<ChannelCredentials> {
  checkTlsFiles('grpcChannelCredentials', 'files', files);
  const current = await files.get();
  checkNoLists('grpcChannelCredentials', current);
  const generations = new Generations<ChannelSocket>();
  const provider = new TlsFilesProvider(files, (isCaRemoved) => {
    generations.forEach(drain);
    if (!isCaRemoved) return;
    const end = (socket: ChannelSocket): unknown => socket[SESSION] ?? socket.destroy();
    files.reportEnded('grpcChannelCredentials', generations.endAll(end));
  });
  const credentials = experimental.createCertificateProviderChannelCredentials(
    provider,
    current.cert ? provider : null,
    verifyOptions ?? {},
  );
  followSessions();
  followSockets(credentials, provider, generations);
  return credentials;
}

/** grpc-js creates its sessions itself; Node.js 22.17 and later tell about them when a stream is created. */
const SESSION = Symbol('the HTTP/2 session of a socket');
/** `null`: a connection of such a channel without a call so far. */
type ChannelSocket = Socket & { [SESSION]?: ClientHttp2Session | null };
let isSubscribed = false;

function followSessions(): void {
  if (isSubscribed) return;
  isSubscribed = true;
  subscribe('http2.client.stream.created', (message) => {
    const { session } = (message as { readonly stream: ClientHttp2Stream }).stream;
    const socket = session?.socket as ChannelSocket | undefined;
    if (socket?.[SESSION] === null) socket[SESSION] = session as ClientHttp2Session;
  });
}

function followSockets(
  credentials: ChannelCredentials,
  provider: TlsFilesProvider,
  generations: Generations<ChannelSocket>,
): void {
  const createConnector = credentials._createSecureConnector.bind(credentials);
  credentials._createSecureConnector = (...args) => {
    const connector = createConnector(...args);
    const connect = connector.connect.bind(connector);
    connector.connect = async (socket) => {
      const begunIn = generations.current;
      const connected = await connect(socket);
      const secured = connected.socket as ChannelSocket;
      secured[SESSION] = null;
      if (begunIn.isOver) secured.destroy();
      else secured.once('close', generations.add(secured));
      provider.followWhileOpen(secured);
      return connected;
    };
    return connector;
  };
}

/** As if the server had said it: the channel connects again, and its calls in flight finish. */
function drain({ [SESSION]: session }: ChannelSocket): void {
  session?.emit('goaway', 0, 0, undefined);
  session?.close();
}
