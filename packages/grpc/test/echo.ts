/** A gRPC service that answers what it is sent, and its clients. */
import * as grpc from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';

const identity = (bytes: Buffer): Buffer => bytes;

/** A gRPC service with one method that answers what it is sent. */
const ECHO = {
  echo: {
    path: '/test.Echo/Echo',
    requestStream: false,
    responseStream: false,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  },
} as const satisfies grpc.ServiceDefinition;

/** A gRPC server that echoes, until the test is over. Returns its port. */
export async function startGrpc(
  credentials: grpc.ServerCredentials,
  options?: grpc.ServerOptions,
): Promise<number> {
  const server = new grpc.Server(options);
  server.addService(ECHO, {
    echo: ({ request }: { request: Buffer }, callback: grpc.sendUnaryData<Buffer>) => callback(null, request),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  onTestFinished(() => server.forceShutdown());
  return port;
}

/** A gRPC client with a connection of its own. */
export class EchoClient {
  readonly #client: grpc.Client;

  constructor(port: number, credentials: grpc.ChannelCredentials) {
    this.#client = new grpc.Client(`127.0.0.1:${port}`, credentials, {
      'grpc.ssl_target_name_override': 'localhost',
      'grpc.use_local_subchannel_pool': 1,
    });
    onTestFinished(() => this.#client.close());
  }

  /** Connects without a call. */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#client.waitForReady(Date.now() + 30_000, (error) => (error ? reject(error) : resolve()));
    });
  }

  /**
   * One call. The deadline is a limit for a hang.
   * @param waitForReady after a failed handshake, calls fail for a second without it
   */
  echo(text: string, { waitForReady = false } = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        ECHO.echo.path,
        identity,
        identity,
        Buffer.from(text),
        new grpc.Metadata({ waitForReady }),
        { deadline: Date.now() + 30_000 },
        (error, answer) => (error ? reject(error) : resolve(String(answer))),
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}
