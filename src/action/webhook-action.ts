import { Buffer } from 'node:buffer';

import { ActionError } from './action-error.js';
import type { Clock } from '../core/clock.js';
import { withDeadline } from '../core/deadline.js';
import {
  hasMethods,
  isPlainObject,
  matching,
  milliseconds,
  nonEmptyString,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import { redactError } from '../core/resilient-error.js';
import type { ValueSource } from '../core/value-source.js';
import type { Action } from './action.js';

/** Options of `webhookAction`. */
export interface WebhookActionOptions {
  /** An `http:` or `https:` URL. A user and password in it are sent as basic authentication. */
  readonly url: string | URL;
  /** Default `POST`. */
  readonly method?: string | undefined;
  /** The range of status codes that mean success, inclusive. Default 200 to 299. */
  readonly status?: readonly [from: number, to: number] | undefined;
  /** Sent with each request; default none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sent as a bearer token; its `get()` is called for each request. Not with another `Authorization`, in `headers` or
   * in the URL.
   */
  readonly token?: Pick<ValueSource<{ readonly value: string } | string>, 'get'> | undefined;
  /** How long a request may take, ms. Default: as long as the run of the `ReloadAction`, whose `timeoutMs` always applies. */
  readonly timeoutMs?: number | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
}

/**
 * Calls a URL with the update as its JSON body. Redirects are not followed, so that headers and update go nowhere else.
 * @throws {TypeError} for an unknown or wrong option, an invalid URL, or two sources of `Authorization`.
 */
export function webhookAction(options: WebhookActionOptions): Action {
  const resolved = resolveOptions('webhookAction', options, OPTIONS);
  const { method, headers, token, timeoutMs, clock } = resolved;
  const [from, to] = resolved.status;
  const { url, authorization } = withoutCredentials(resolved.url);
  refuseTwoAuthorizations(authorization, token, headers);
  // Not the query, which may hold a secret.
  const name = `${method} ${url.origin}${url.pathname}`;
  const failed = (reason: string): ActionError =>
    new ActionError('ERR_ACTION_WEBHOOK', `Action ${name} failed: ${reason}`);
  return {
    name,
    kind: 'webhook',
    async run(update, { signal }) {
      const sent: Record<string, string> = {
        'content-type': 'application/json',
        ...authorization,
        ...headers,
      };
      const secrets = [...Object.values(authorization), ...Object.values(headers)];
      if (token) {
        const value = await token.get();
        const bearer = typeof value === 'string' ? value : value.value;
        secrets.push(bearer);
        sent['authorization'] = `Bearer ${bearer}`;
      }
      const hasBody = method !== 'GET' && method !== 'HEAD';
      let response: Response;
      try {
        const body = hasBody && { body: JSON.stringify(update) };
        const request = (signal: AbortSignal): Promise<Response> =>
          fetch(url, { method, headers: sent, signal, redirect: 'manual', ...body });
        const late = (): Error => new Error(`it did not answer within ${timeoutMs} ms`);
        response =
          timeoutMs === Infinity
            ? await request(signal)
            : await withDeadline(request, { clock, timeoutMs, signal, late });
      } catch (thrown) {
        // The reason for `fetch failed` is in the cause. The message about an invalid header quotes it.
        const failure = redactError(thrown, secrets);
        const { message, name: kind } = failure.cause instanceof Error ? failure.cause : failure;
        throw failed(message || kind);
      }
      // The body is not needed, and may never end.
      await response.body?.cancel();
      if (response.status < from || response.status > to) {
        throw failed(
          `it answered with status ${response.status}, not ${from === to ? from : `${from}-${to}`}`,
        );
      }
    },
  };
}

function refuseTwoAuthorizations(
  fromUrl: Readonly<Record<string, string>>,
  token: WebhookActionOptions['token'],
  headers: Readonly<Record<string, string>>,
): void {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const sources = [
    fromUrl['authorization'] !== undefined,
    token !== undefined,
    names.includes('authorization'),
  ];
  if (sources.filter(Boolean).length > 1) {
    throw new TypeError(
      'webhookAction: give one of "token", an Authorization header, and a user and password in "url"',
    );
  }
}

const isStatus = (value: unknown): boolean => Number.isInteger(value);

const OPTIONS = {
  url: matching<string | URL>(
    '',
    'an http(s) URL',
    (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
  ),
  method: nonEmptyString('POST'),
  status: matching<readonly [from: number, to: number]>(
    [200, 299],
    'an array of two status codes',
    (value) => Array.isArray(value) && value.length === 2 && value.every(isStatus),
  ),
  headers: matching<Readonly<Record<string, string>>>({}, 'an object of strings', isPlainObject),
  token: matching<WebhookActionOptions['token']>(undefined, 'an object with get', (value) =>
    hasMethods(value, ['get']),
  ),
  timeoutMs: milliseconds(Infinity, { min: 1 }),
  clock: PORT_OPTIONS.clock,
};

/** Separates the credentials from the URL: `fetch` refuses such a URL with a message that quotes it. */
function withoutCredentials(given: string | URL): { url: URL; authorization: Record<string, string> } {
  const url = new URL(given);
  const { username, password } = url;
  if (username === '' && password === '') return { url, authorization: {} };
  url.username = '';
  url.password = '';
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url, authorization: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } };
}
