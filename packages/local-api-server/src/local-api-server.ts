import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

import { systemClock, type Clock, type TokenAnswer } from 'resilient-watcher';

import type { CertificateSigner } from './certificate-signer.js';
import { failure, type ApiAnswer } from './local-api-server/api-answer.js';
import { CertificateApi, type PodCertificateOutcome } from './local-api-server/certificate-api.js';
import { ObjectApi } from './local-api-server/object-api.js';
import { ObjectStore, type ApiObject, type StoredObject } from './local-api-server/object-store.js';
import { parseBody } from './local-api-server/request-body.js';
import { apiVersionOf, resourceNamed } from './local-api-server/resources.js';
import {
  createServerCertificates,
  firstServerCertificates,
  type ServerCertificates,
} from './local-api-server/server-certificates.js';
import { ServiceAccountApi } from './local-api-server/service-account-api.js';
import {
  ISSUER,
  subjectOf,
  TokenAuthority,
  type BoundObject,
  type User,
} from './local-api-server/token-authority.js';

/** Options of `LocalApiServer`. */
export interface LocalApiServerOptions {
  /** The clock by which tokens are dated and verified. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The TCP port. Default 0: a free port. */
  readonly port?: number | undefined;
}

/** A fault: how the server handles a request instead of answering it normally. */
export type ApiFault =
  /** 429 with `Retry-After`. */
  | { readonly kind: 'throttled'; readonly retryAfterSeconds: number }
  /** 503, as from a load balancer without a healthy server behind it. */
  | { readonly kind: 'unavailable' }
  /** Any other status, with a `metav1.Status`. */
  | { readonly kind: 'status'; readonly status: number; readonly message: string }
  /** Takes the request and never answers. */
  | { readonly kind: 'stuck' }
  /** Drops the connection. */
  | { readonly kind: 'reset' };

/** A request that was received. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  /** The authenticated user; undefined if there is none or a fault came first. */
  readonly subject: string | undefined;
  /** The status of the response; undefined if there was none. */
  readonly status: number | undefined;
}

/** Options of a token that is minted without a request. */
export interface MintOptions {
  /** Default: the server's own audience. */
  readonly audiences?: readonly string[] | undefined;
  /** Default 3600. */
  readonly expirationSeconds?: number | undefined;
  readonly boundObject?: BoundObject | undefined;
}

/** Real requests have some KiB. */
const MAX_BODY_BYTES = 1024 * 1024;

/** How long an idle connection is kept, ms: as in kube-apiserver, and longer than any test on a busy machine. */
const KEEP_ALIVE_MS = 90_000;

/** Readable without a token, as with `system:public-info-viewer`. */
const PUBLIC_PATHS = ['/version', '/healthz', '/livez', '/readyz'];

/**
 * A Kubernetes API server without controllers, on a real HTTPS socket of the loopback interface: objects of any
 * resource, by their paths, that are created, read, updated, patched, deleted, listed and watched; TokenRequest,
 * TokenReview, SelfSubjectReview; PodCertificateRequest and ClusterTrustBundle; discovery. It is enough for
 * `@kubernetes/client-node` and `kubectl`, in JSON. It accepts the bearer tokens it minted and no others. Every user
 * may do everything except what `forbid()` forbids. Nothing is validated against a schema, no server-side apply is
 * served, and owners are not followed.
 *
 * ```ts
 * const server = await LocalApiServer.start();
 * server.addServiceAccount('kube-system', 'builder');
 * const { token } = await server.mint('kube-system', 'builder');
 * await server.rotateSigningKey(); // 401 for that token from now on
 * server.script({ kind: 'throttled', retryAfterSeconds: 3 }, { kind: 'stuck' }); // the next two requests
 * ```
 */
export class LocalApiServer {
  /** The fault for requests that are not scripted; undefined: they are answered. */
  otherwise: ApiFault | undefined;
  readonly #server: Server;
  readonly #authority: TokenAuthority;
  readonly #api: ServiceAccountApi;
  readonly #certificateApi: CertificateApi;
  readonly #objectApi: ObjectApi;
  readonly #store: ObjectStore;
  readonly #script: ApiFault[] = [];
  readonly #requests: ReceivedRequest[] = [];
  /** Includes those without a complete TLS handshake, which the server does not count among its connections. */
  readonly #sockets = new Set<Socket>();
  #certificates: ServerCertificates;
  #port: number;

  private constructor(
    port: number,
    clock: Clock,
    authority: TokenAuthority,
    certificates: ServerCertificates,
  ) {
    this.#store = new ObjectStore(clock);
    this.#certificateApi = new CertificateApi(clock, this.#store);
    this.#objectApi = new ObjectApi(clock, this.#store);
    this.#port = port;
    this.#authority = authority;
    this.#api = new ServiceAccountApi(authority, this.#store);
    this.#certificates = certificates;
    const { certificate: cert, key } = certificates;
    this.#server = createServer({ cert, key, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      // A client may disconnect at any time.
      for (const stream of [request, response]) stream.on('error', () => {});
      void this.#serve(request, response);
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Starts a server with the ServiceAccount `default/default`. */
  static async start({ clock = systemClock, port = 0 }: LocalApiServerOptions = {}): Promise<LocalApiServer> {
    const authority = await TokenAuthority.create(clock);
    const server = new LocalApiServer(port, clock, authority, firstServerCertificates());
    server.addServiceAccount('default', 'default');
    await server.listen();
    return server;
  }

  /** `https://127.0.0.1:<port>`; the port stays the same for the life of the server. */
  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** The certificate authority that clients have to trust, PEM. Servers of one process start with the same one. */
  get caPem(): string {
    return this.#certificates.ca;
  }

  /** Every request so far, answered or not, oldest first. */
  get requests(): readonly ReceivedRequest[] {
    return this.#requests;
  }

  /** How far the server's clock, by which tokens are dated and verified, is ahead of ours, ms. */
  get skewMs(): number {
    return this.#authority.skewMs;
  }

  set skewMs(skewMs: number) {
    this.#authority.skewMs = skewMs;
  }

  /** Whether there is a TokenRequest API; false: 404, and it is missing in the discovery document. */
  get hasTokenRequest(): boolean {
    return this.#api.hasTokenRequest;
  }

  set hasTokenRequest(hasTokenRequest: boolean) {
    this.#api.hasTokenRequest = hasTokenRequest;
  }

  /** Whether a watch may begin with what exists (`sendInitialEvents`, since 1.32); false: 422. */
  get hasStreamingLists(): boolean {
    return this.#objectApi.hasStreamingLists;
  }

  set hasStreamingLists(hasStreamingLists: boolean) {
    this.#objectApi.hasStreamingLists = hasStreamingLists;
  }

  addServiceAccount(namespace: string, name: string): void {
    this.#api.add(namespace, name);
  }

  deleteServiceAccount(namespace: string, name: string): void {
    this.#api.delete(namespace, name);
  }

  /** Whether this account may request tokens; default true. */
  forbid(namespace: string, name: string, isForbidden = true): void {
    const subject = subjectOf({ namespace, name });
    if (isForbidden) this.#api.forbidden.add(subject);
    else this.#api.forbidden.delete(subject);
  }

  /** A token of an account, which is added if it does not exist, as kubelet would project it. */
  mint(namespace: string, name: string, options: MintOptions = {}): Promise<TokenAnswer> {
    const { audiences = [ISSUER], expirationSeconds = 3_600, boundObject } = options;
    const account = this.#api.add(namespace, name);
    return this.#authority.mint({ account, audiences, expirationSeconds, boundObject });
  }

  /** Issues the pod certificates; its `certificate` is their root. */
  get podCertificateSigner(): CertificateSigner {
    return this.#certificateApi.signer;
  }

  /** The outcome of each PodCertificateRequest. Default `Issued`. */
  get podCertificateOutcome(): PodCertificateOutcome {
    return this.#certificateApi.outcome;
  }

  set podCertificateOutcome(outcome: PodCertificateOutcome) {
    this.#certificateApi.outcome = outcome;
  }

  /** Adds or replaces a ClusterTrustBundle, PEM. */
  putTrustBundle(name: string, trustBundle: string, signerName?: string): void {
    this.#certificateApi.putTrustBundle(name, trustBundle, signerName);
  }

  removeTrustBundle(name: string): void {
    this.#certificateApi.removeTrustBundle(name);
  }

  /**
   * Creates or replaces an object, with its status, whatever its version.
   * @param resource as kubectl writes it: `pods`, `leases.v1.coordination.k8s.io`, `widgets.v1.example.org`.
   * @throws {TypeError} for another form of a resource.
   */
  putObject(resource: string, object: ApiObject): StoredObject {
    const { namespace } = object.metadata;
    const found = resourceNamed(this.#store, resource, namespace !== undefined);
    return this.#store.put(found.name, { apiVersion: apiVersionOf(found), kind: found.kind, ...object });
  }

  /**
   * Deletes an object at once, whatever its finalizers.
   * @param namespace empty: it is in no namespace.
   */
  deleteObject(resource: string, namespace: string, name: string): void {
    this.#store.delete(resourceNamed(this.#store, resource, namespace !== '').name, namespace, name);
  }

  /** @param namespace empty: it is in no namespace. */
  getObject(resource: string, namespace: string, name: string): StoredObject | undefined {
    return this.#store.get(resourceNamed(this.#store, resource, namespace !== '').name, namespace, name);
  }

  /** Forgets all changes so far: open watches, and new ones from an older version, are 410 Gone. */
  expireWatches(): void {
    this.#store.forget();
  }

  /** Rotates the signing key: tokens that were minted before are refused from now on. */
  rotateSigningKey(): Promise<void> {
    return this.#authority.rotate();
  }

  /** New connections get a certificate of a new authority, see `caPem`; open ones are closed. */
  rotateCertificates(): Promise<void> {
    this.#certificates = createServerCertificates();
    const { certificate: cert, key } = this.#certificates;
    this.#server.setSecureContext({ cert, key });
    this.#closeConnections();
    return Promise.resolve();
  }

  /** Scripts the next requests, one fault for each. */
  script(...steps: ApiFault[]): void {
    this.#script.push(...steps);
  }

  /** Accepts connections, again after `refuse()`. */
  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#server.off('error', reject);
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  /** Closes all connections and refuses new ones (ECONNREFUSED) until `listen()`. Idempotent. */
  refuse(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#closeConnections();
    });
  }

  /** The same as `refuse()`. */
  close(): Promise<void> {
    return this.refuse();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #closeConnections(): void {
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const path = pathOf(url);
    const fault = this.#script.shift() ?? this.otherwise;
    let subject: string | undefined;
    let answer: ApiAnswer | 'stuck' | 'reset';
    if (fault) answer = answerOf(fault);
    else {
      const user = await this.#authenticate(request);
      subject = user?.username;
      // The server continues, whatever was sent.
      answer = await this.#answer(request, { method, path, user }).catch(() =>
        failure(400, 'the request cannot be answered'),
      );
    }
    const status = typeof answer === 'object' ? answer.status : undefined;
    this.#requests.push({ method, path, subject, status });
    if (answer === 'stuck') return;
    if (answer === 'reset') request.socket.destroy();
    else if (answer.stream) {
      response.writeHead(answer.status, { 'content-type': 'application/json' }).flushHeaders();
      const end = answer.stream(
        (text) => void response.write(text),
        () => void response.end(),
      );
      response.once('close', end);
    } else {
      const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
      const type = typeof answer.body === 'string' ? 'text/plain' : 'application/json';
      response.writeHead(answer.status, { 'content-type': type, ...answer.headers }).end(text);
    }
  }

  async #authenticate({ headers: { authorization = '' } }: IncomingMessage): Promise<User | undefined> {
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
    if (!token) return undefined;
    return this.#authority.verify(token, [ISSUER]).then(
      ({ user }) => user,
      () => undefined,
    );
  }

  async #answer(
    request: IncomingMessage,
    call: { readonly method: string; readonly path: string; readonly user: User | undefined },
  ): Promise<ApiAnswer> {
    const { method, path, user = ANONYMOUS } = call;
    const isPublic = PUBLIC_PATHS.includes(path);
    if (!call.user && !isPublic) return failure(401, 'Unauthorized');
    if (isPublic && path !== '/version') return { status: 200, body: 'ok' };
    const { url = '', headers } = request;
    const { accept = '', 'content-type': contentType = '' } = headers;
    const bytes = await bytesOf(request);
    if (!bytes) return failure(413, `the body of the request has more than ${MAX_BODY_BYTES} bytes`);
    if (contentType.includes('apply-patch')) {
      return failure(
        415,
        'server-side apply is not served by the LocalApiServer; send a merge patch or an update',
      );
    }
    let body: unknown;
    try {
      body = parseBody(bytes);
    } catch {
      return failure(400, 'the body of the request is neither JSON nor protobuf');
    }
    const asked = { method, path, query: new URLSearchParams(url.split('?')[1]), accept, contentType, body };
    return (
      this.#certificateApi.answer(asked, (created) => this.#objectApi.answer(created)) ??
      this.#objectApi.answer(asked) ??
      this.#api.answer({ method, path, user, body })
    );
  }
}

const ANONYMOUS: User = { username: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] };

/** Without the query and a slash at its end. Not a URL: `//` and `http://` are paths like any other. */
function pathOf(url: string): string {
  const [path = '/'] = url.split('?', 1);
  return path.replace(/(?<=.)\/$/, '');
}

function answerOf(fault: ApiFault): ApiAnswer | 'stuck' | 'reset' {
  switch (fault.kind) {
    case 'throttled':
      return failure(429, 'too many requests, please try again later', fault);
    case 'unavailable':
      return failure(503, 'the server is currently unable to handle the request');
    case 'status':
      return failure(fault.status, fault.message);
    case 'stuck':
    case 'reset':
      return fault.kind;
  }
}

/** Undefined if the body is too long; the rest is read and discarded, so that the client reads the response. */
async function bytesOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks) : undefined;
}
