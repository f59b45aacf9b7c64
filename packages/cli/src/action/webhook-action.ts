import { Buffer } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';

import type { ValueSource } from 'resilient-watcher';
import {
  hasMethods,
  isStringMap,
  matching,
  nonEmptyString,
  redact,
  redactError,
  resolveOptions,
  USER_AGENT,
} from 'resilient-watcher/internal';

import { type Action, actionFailed } from './action.js';
import type { ActionUpdate } from './action-update.js';

/** Options of `webhookAction`. */
export interface WebhookActionOptions {
  /**
   * An `http:` or `https:` URL. A user and password in it are sent as basic authentication. Names, errors and telemetry
   * show its origin only, since user, path and query may be secret.
   */
  readonly url: string | URL;
  /** Default `POST`. */
  readonly method?: string | undefined;
  /** Sent with each request; default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sent as a bearer token; its `get()` is called for each request. Not with another `Authorization`, in `headers` or
   * in the URL.
   */
  readonly token?: Pick<ValueSource<{ readonly value: string } | string>, 'get'> | undefined;
  /** A file with the CAs that the server is verified by, PEM. Default: those of Node.js. Read for each request. */
  readonly caFile?: string | undefined;
  /** A file with the certificate of this client, and its chain, PEM. Only with `keyFile`. Read for each request. */
  readonly certFile?: string | undefined;
  /** A file with the key of `certFile`, PEM. */
  readonly keyFile?: string | undefined;
}

const OPTIONS = {
  url: matching<string | URL>(
    '',
    'an http(s) URL',
    (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
  ),
  method: matching<string>(
    'POST',
    'an HTTP method',
    (value) => typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value),
  ),
  headers: matching<Readonly<Record<string, string>>>({}, 'an object of strings', isStringMap),
  token: matching<WebhookActionOptions['token']>(undefined, 'an object with get', (value) =>
    hasMethods(value, ['get']),
  ),
  caFile: nonEmptyString(undefined),
  certFile: nonEmptyString(undefined),
  keyFile: nonEmptyString(undefined),
};

/** What is shown of the answer of a server that refuses, characters. */
const LONGEST_REASON = 300;
/** What is read of it: a secret that begins in what is shown is read to its end. */
const MOST_OF_ANSWER = 16_384;

/**
 * Calls a URL with the update as its JSON body; any status from 200 to 299 is success. Redirects are not followed, so
 * that headers and update go nowhere else.
 * @throws {TypeError} for an unknown or wrong option, an invalid URL, or two sources of `Authorization`.
 */
export function webhookAction(options: WebhookActionOptions): Action {
  const resolved = resolveOptions('webhookAction', options, OPTIONS);
  const { url: given, method, headers, token, certFile, keyFile } = resolved;
  const { url, basic } = withoutCredentials(given);
  const inHeaders = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization');
  if ([basic, token, inHeaders].filter((source) => source !== undefined).length > 1) {
    throw new TypeError(
      'webhookAction: give one of "token", an Authorization header, and a user and password in "url"',
    );
  }
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new TypeError('webhookAction: "certFile" and "keyFile" belong together');
  }
  const tlsFiles = [resolved.caFile, certFile, keyFile];
  if (url.protocol === 'http:' && tlsFiles.some((file) => file !== undefined)) {
    throw new TypeError('webhookAction: "caFile", "certFile" and "keyFile" need an https URL');
  }
  // Without path and query, which may be secret, as in the URL of a Slack webhook.
  const name = `${method} ${url.origin}`;
  const secrets = [basic ?? '', ...Object.values(headers), ...partsOf(url)];
  const call = async (
    update: ActionUpdate,
    bearer: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> => {
    const sent = new Headers(headers);
    const authorization = bearer === undefined ? basic : `Bearer ${bearer}`;
    if (authorization !== undefined) sent.set('authorization', authorization);
    if (!sent.has('user-agent')) sent.set('user-agent', USER_AGENT);
    if (!sent.has('content-type')) sent.set('content-type', 'application/json');
    const read = async (file: string | undefined): Promise<Buffer | undefined> =>
      file === undefined ? undefined : readFile(file, { signal });
    const [ca, cert, key] = await Promise.all(tlsFiles.map(read));
    const body = method === 'GET' || method === 'HEAD' ? '' : JSON.stringify(update);
    return answerTo(url, { method, headers: Object.fromEntries(sent), signal, ca, cert, key }, body);
  };
  return {
    name,
    kind: 'webhook',
    async run(update, { signal }) {
      const bearer = token && bearerOf(await token.get());
      if (bearer === '') throw actionFailed(name, 'its token source gave no token');
      const hidden = [...secrets, bearer ?? ''];
      const response = await call(update, bearer, signal).catch((thrown: unknown) => {
        const { message, name: kind } = redactError(thrown, hidden);
        throw actionFailed(name, message || kind);
      });
      const { statusCode = 0 } = response;
      // The body of a success is not needed, and may never end.
      const said = statusCode >= 200 && statusCode < 300 ? undefined : await textOf(response);
      response.destroy();
      if (said === undefined) return;
      const reason = redact(said, hidden).replace(/\s+/g, ' ').trim().slice(0, LONGEST_REASON);
      throw actionFailed(name, `it answered with status ${statusCode}${reason === '' ? '' : `: ${reason}`}`);
    },
  };
}

function answerTo(
  url: URL,
  { ca, cert, key, ...options }: RequestOptions,
  body: string,
): Promise<IncomingMessage> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  // With files of its own, a connection is not shared with others, nor kept beyond a renewal.
  const isOwn = ca !== undefined || cert !== undefined;
  const own = isOwn && { agent: false, ...(ca && { ca }), ...(cert && { cert, key }) };
  return new Promise((resolve, reject) => {
    send(url, { ...options, ...own }, resolve)
      .once('error', reject)
      .end(body);
  });
}

/** The beginning of the body; empty if it cannot be read. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  try {
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
      text += chunk;
      if (text.length > MOST_OF_ANSWER) break;
    }
  } catch {
    // What has been read may say enough.
  }
  return text;
}

/** What is secret of a URL, as a server may quote it: the whole path and query, and what they consist of. */
function partsOf({ pathname, search, searchParams }: URL): string[] {
  const names = [...pathname.split('/'), ...searchParams.values()].filter(({ length }) => length >= 8);
  return [`${pathname}${search}`, pathname, search, ...names].filter((part) => part !== '/');
}

/** Empty if there is none, whatever the types say. */
function bearerOf(value: { readonly value: string } | string | undefined): string {
  return (typeof value === 'object' ? value.value : value) ?? '';
}

/**
 * Separates the credentials from the URL: `fetch` refuses such a URL with a message that quotes it.
 * @throws {TypeError} for another URL, without quoting it.
 */
function withoutCredentials(given: string | URL): { readonly url: URL; readonly basic: string | undefined } {
  try {
    const url = new URL(given);
    if (!['http:', 'https:'].includes(url.protocol)) throw new TypeError('another protocol');
    const { username, password } = url;
    if (username === '' && password === '') return { url, basic: undefined };
    url.username = '';
    url.password = '';
    const pair = percentDecoded(`${username}:${password}`);
    return { url, basic: `Basic ${pair.toString('base64')}` };
  } catch {
    throw new TypeError('webhookAction: option "url" must be an http(s) URL');
  }
}

/** The bytes of a part of a URL, which is ASCII. A `%` that escapes nothing stands for itself, as in curl. */
function percentDecoded(part: string): Buffer {
  const bytes = part.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
