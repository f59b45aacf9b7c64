import { Buffer } from 'node:buffer';

import type { ValueSource } from 'resilient-watcher';
import {
  hasMethods,
  isStringMap,
  matching,
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
};

/**
 * Calls a URL with the update as its JSON body; any status from 200 to 299 is success. Redirects are not followed, so that
 * headers and update go nowhere else.
 * @throws {TypeError} for an unknown or wrong option, an invalid URL, or two sources of `Authorization`.
 */
export function webhookAction(options: WebhookActionOptions): Action {
  const { url: given, method, headers, token } = resolveOptions('webhookAction', options, OPTIONS);
  const { url, basic } = withoutCredentials(given);
  const inHeaders = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization');
  if ([basic, token, inHeaders].filter((source) => source !== undefined).length > 1) {
    throw new TypeError(
      'webhookAction: give one of "token", an Authorization header, and a user and password in "url"',
    );
  }
  // Without path and query, which may be secret, as in the URL of a Slack webhook.
  const name = `${method} ${url.origin}`;
  const call = async (
    update: ActionUpdate,
    bearer: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> => {
    const sent = new Headers(headers);
    const authorization = bearer === undefined ? basic : `Bearer ${bearer}`;
    if (authorization !== undefined) sent.set('authorization', authorization);
    if (!sent.has('user-agent')) sent.set('user-agent', USER_AGENT);
    if (!sent.has('content-type')) sent.set('content-type', 'application/json');
    const body = method === 'GET' || method === 'HEAD' ? {} : { body: JSON.stringify(update) };
    return fetch(url, { method, headers: sent, signal, redirect: 'manual', ...body });
  };
  return {
    name,
    kind: 'webhook',
    async run(update, { signal }) {
      const bearer = token && bearerOf(await token.get());
      if (bearer === '') throw actionFailed(name, 'its token source gave no token');
      const response = await call(update, bearer, signal).catch((thrown: unknown) => {
        const secrets = [url.pathname, url.search, basic ?? '', bearer ?? '', ...Object.values(headers)];
        // The reason for `fetch failed` is in the cause. The message about an invalid header quotes it.
        const failure = redactError(thrown, secrets);
        const { message, name: kind } = failure.cause instanceof Error ? failure.cause : failure;
        throw actionFailed(name, message || kind);
      });
      // The body is not needed, and may never end.
      await response.body?.cancel();
      if (!response.ok) throw actionFailed(name, `it answered with status ${response.status}`);
    },
  };
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
