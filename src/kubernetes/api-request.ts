import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { Agent, request as requestHttps, type RequestOptions } from 'node:https';

import { untilAborted } from '../core/scheduling/abort.js';
import { redact } from '../core/options/redaction.js';
import { USER_AGENT } from '../core/options/version.js';
import { KubernetesError } from './kubernetes-error.js';
import { proxyLogin, tunnelAgent } from './proxy-tunnel.js';

/** Discovery documents have some 100 KiB, tokens 2 KiB. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** An API server, and the credentials of its requests. */
export interface ApiAccess {
  readonly server: string;
  /** The proxy on the way. */
  readonly proxy: string | undefined;
  /** What authenticates the requests is added, and must not be shown. */
  readonly secrets?: string[];
  /** Adds the TLS settings, the credentials, and an agent for this request only. */
  authenticate(options: RequestOptions): Promise<void>;
}

/** One request to an API server. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** The path below the server's URL, from `/`, with the query. */
  readonly path: string;
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown;
  /** The media type of the body. Default `application/json`. */
  readonly type?: string | undefined;
  /** The media type of the answer. Default `application/json`. */
  readonly accept?: string | undefined;
  readonly signal: AbortSignal;
}

/** The codes by which the failures of any client of any copy of the library are recognized. */
export const API_FAILURES = ['ERR_API_ANSWER', 'ERR_API_TOO_LONG'] as const;

/** The API server answered with an error status, or with something that cannot be used, such as a text without end. */
export class ApiFailure extends KubernetesError {
  declare readonly code: (typeof API_FAILURES)[number];
  readonly status: number;
  /** Not enumerable, as the body. */
  declare readonly headers: Readonly<Record<string, unknown>>;
  /** The body as received, which may quote anything, so that it is not printed. */
  declare readonly body: unknown;

  constructor(
    status: number,
    message: string,
    options: { code?: ApiFailure['code']; headers?: ApiFailure['headers']; body?: unknown } = {},
  ) {
    const { code = 'ERR_API_ANSWER', headers = {}, body } = options;
    super(code, redact(message));
    this.status = status;
    Object.defineProperties(this, { headers: { value: headers }, body: { value: body } });
  }
}

/**
 * Makes one authenticated request, and resolves to the response. Does not follow redirects, which would receive the
 * credentials, and reads at most 4 MiB.
 * @param agent keeps the connection for later requests. Default: the connection is closed.
 * @throws {ApiFailure} for any status except 2xx.
 * @throws the error of Node.js when the server cannot be reached or is not trusted.
 */
export async function requestApi(access: ApiAccess, request: ApiRequest, agent?: Agent): Promise<unknown> {
  const { response, release } = await send(access, request, agent);
  try {
    return await answerOf(response);
  } finally {
    // The rest of the response is not read.
    release();
  }
}

/**
 * The lines of an answer that does not end, such as a watch, as they arrive.
 * @throws {ApiFailure} for any status except 2xx, and for a line of more than 4 MiB.
 */
export async function* linesOfApi(access: ApiAccess, request: ApiRequest): AsyncGenerator<string, void> {
  const { response, release } = await send(access, request);
  try {
    const { statusCode: status = 0 } = response;
    if (status < 200 || status >= 300) await answerOf(response);
    let line: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      let from = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        line.push(chunk.subarray(from, end));
        yield Buffer.concat(line).toString('utf8');
        line = [];
        length = 0;
        from = end + 1;
      }
      line.push(chunk.subarray(from));
      length += chunk.length - from;
      if (length > MAX_BODY_BYTES) {
        throw new ApiFailure(status, `a line of the answer has more than ${MAX_BODY_BYTES} bytes`, {
          code: 'ERR_API_TOO_LONG',
        });
      }
    }
  } finally {
    release();
  }
}

interface Sent {
  readonly response: IncomingMessage;
  /** Ends the response, and its connection unless that is kept. */
  readonly release: () => void;
}

async function send(access: ApiAccess, request: ApiRequest, kept?: Agent): Promise<Sent> {
  const { method, path, body, type = 'application/json', accept = 'application/json', signal } = request;
  const options: RequestOptions = {};
  await untilAborted(access.authenticate(options), signal);
  access.secrets?.push(...secretsIn(options, access.proxy));
  const { agent } = options;
  const own = access.proxy && typeof agent === 'object' ? tunnelAgent(agent, access.proxy, signal) : agent;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    'user-agent': USER_AGENT,
    ...(options.headers as OutgoingHttpHeaders | undefined),
    accept,
    ...(text !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
  };
  const url = new URL(access.server.replace(/(?<!\/)\/+$/, '') + path);
  const settings = {
    ...options,
    agent: own,
    ...(kept && !access.proxy && keptWith(kept, own)),
    method,
    headers,
    signal,
  };
  const requester = url.protocol === 'http:' ? requestHttp : requestHttps;
  const close = (): void => {
    // Its connection was opened for this request only.
    if (typeof own === 'object') own.destroy();
  };
  try {
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      requester(url, settings, resolve)
        // Without this listener Node.js ends the request, and reports nothing.
        .once('upgrade', ({ statusCode = 0 }, socket) => {
          socket.destroy();
          reject(new ApiFailure(statusCode, 'it switches to another protocol'));
        })
        .once('error', reject)
        .end(text);
    });
    // A request that waits for its connection does not end with the signal.
    const response = await untilAborted(answer, signal);
    return {
      response,
      release: () => {
        if (!response.complete || settings.agent === own) response.destroy();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** What authenticates a request, to the server and to a proxy. */
function secretsIn({ headers, auth }: RequestOptions, proxy: string | undefined): string[] {
  const values = Object.entries({ ...(headers as OutgoingHttpHeaders | undefined) })
    // Whom the request is for is no secret.
    .filter(([name]) => !/^(?:impersonate-|user-agent$|accept|content-)/i.test(name))
    .flatMap(([, value]) => [value].flat().map(String));
  const proxyAuth = proxy === undefined ? undefined : proxyLogin(proxy);
  const logins = [auth, proxyAuth].filter((login) => login !== undefined && login !== null);
  for (const value of values) {
    const [, encoded] = /^Basic +(\S+)$/i.exec(value) ?? [];
    if (encoded !== undefined) logins.push(Buffer.from(encoded, 'base64').toString('utf8'));
  }
  return [
    ...values.flatMap((value) => [value, value.replace(/^\w+ +/, '')]),
    ...logins.flatMap((login) => [login, login.slice(login.indexOf(':') + 1)]),
  ];
}

/**
 * The agent that keeps connections, with the TLS settings of the one that was made for this request: the agent shares
 * a connection only between requests with the same settings. One of another kind is used as it is.
 */
function keptWith(kept: Agent, own: RequestOptions['agent']): RequestOptions {
  if (typeof own !== 'object' || own.constructor !== Agent) return {};
  const {
    path: _path,
    keepAlive: _keepAlive,
    ...tls
  } = (own as Agent).options as RequestOptions & {
    keepAlive?: unknown;
  };
  return { ...tls, agent: kept };
}

async function answerOf(response: IncomingMessage): Promise<unknown> {
  const { statusCode: status = 0, headers } = response;
  if (status >= 300 && status < 400) {
    throw new ApiFailure(
      status,
      'it redirects elsewhere; redirects are not followed, because they would leak the credentials',
    );
  }
  const text = await readText(response, status);
  const isSuccess = status >= 200 && status < 300;
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // For example the HTML page of a proxy.
    if (isSuccess) throw new ApiFailure(status, 'the answer is not JSON');
  }
  if (!isSuccess) throw new ApiFailure(status, messageOf(body), { headers, body });
  return body;
}

/** The text of a response of at most 4 MiB. */
async function readText(answer: IncomingMessage, status: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      throw new ApiFailure(status, `the answer has more than ${MAX_BODY_BYTES} bytes`, {
        code: 'ERR_API_TOO_LONG',
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The message of a `metav1.Status`. */
export function messageOf(body: unknown): string {
  const { message } = Object(body) as { message?: unknown };
  return typeof message === 'string' ? message : '';
}
