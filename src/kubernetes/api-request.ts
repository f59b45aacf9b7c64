import {
  request as requestHttp,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { request as requestHttps, type RequestOptions } from 'node:https';

/** Discovery documents have some 100 KiB, tokens 2 KiB. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** An API server, and the credentials of its requests. */
export interface ApiAccess {
  /** Its URL. */
  readonly server: string;
  /** Adds the TLS settings, the credentials, and an agent for this request only. */
  authenticate(options: RequestOptions): Promise<void>;
}

/** One request to an API server. */
interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** The path below the server's URL, from `/`. */
  readonly path: string;
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** The API server answered with an error status. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The body as received, which may quote anything. */
  readonly body: unknown;

  constructor(
    status: number,
    message: string,
    options: { headers?: IncomingHttpHeaders; body?: unknown } = {},
  ) {
    super(message);
    this.status = status;
    this.headers = options.headers ?? {};
    this.body = options.body;
  }
}

/**
 * Makes one authenticated request, and resolves to the response. Does not follow redirects, which would receive the
 * credentials, and reads at most 4 MiB.
 * @throws {ApiFailure} for any status except 2xx.
 * @throws the error of Node.js when the server cannot be reached or is not trusted.
 */
export async function requestApi(
  access: ApiAccess,
  { method, path, body, signal }: ApiRequest,
): Promise<unknown> {
  const options: RequestOptions = {};
  await access.authenticate(options);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    ...(options.headers as OutgoingHttpHeaders | undefined),
    accept: 'application/json',
    ...(text !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }),
  };
  const url = new URL(access.server.replace(/(?<!\/)\/+$/, '') + path);
  const send = url.protocol === 'http:' ? requestHttp : requestHttps;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      send(url, { ...options, method, headers, signal }, resolve)
        .once('error', reject)
        .end(text);
    });
    return await answerOf(response);
  } finally {
    // The connection was opened for this request only; the rest of the response is not read.
    if (typeof options.agent === 'object') options.agent.destroy();
  }
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
export async function readText(answer: AsyncIterable<Uint8Array>, status: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      throw new ApiFailure(status, `the answer has more than ${MAX_BODY_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The message of a `metav1.Status`. */
function messageOf(body: unknown): string {
  const { message } = Object(body) as { message?: unknown };
  return typeof message === 'string' ? message : '';
}
