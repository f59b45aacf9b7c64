import { Buffer } from 'node:buffer';

import { ActionError } from '../core/errors.js';
import { redactError } from '../core/resilient-error.js';
import type { ValueSource } from '../core/value-source.js';
import type { Action } from './action.js';

/** Options of `webhookAction`. */
export interface WebhookActionOptions {
  /** A user and password in it are sent as basic authentication. */
  readonly url: string | URL;
  /** Default `POST`. */
  readonly method?: string | undefined;
  /** The status codes that mean success, from and to. Default 200 to 299. */
  readonly status?: readonly [from: number, to: number] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as a bearer token; asked for at each call. */
  readonly token?: Pick<ValueSource<{ readonly value: string } | string>, 'get'> | undefined;
}

/**
 * Calls a URL with the update as its JSON body. No redirect is followed: headers and update go nowhere else. How long it
 * may take is the `timeoutMs` of the `ReloadAction`.
 * @throws {TypeError} for an invalid URL.
 */
export function webhookAction(options: WebhookActionOptions): Action {
  const { method = 'POST', status: [from, to] = [200, 299], headers = {}, token } = options;
  const { url, authorization } = withoutCredentials(options.url);
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
        response = await fetch(url, {
          method,
          headers: sent,
          signal,
          redirect: 'manual',
          ...(hasBody && { body: JSON.stringify(update) }),
        });
      } catch (thrown) {
        // `fetch failed` has its reason in the cause. A header that is not valid is quoted.
        const failure = redactError(thrown, secrets);
        const { message, name: kind } = failure.cause instanceof Error ? failure.cause : failure;
        throw failed(message || kind);
      }
      // Its body is of no interest, and may never end.
      await response.body?.cancel();
      if (response.status < from || response.status > to) {
        throw failed(
          `it answered with status ${response.status}, not ${from === to ? from : `${from}-${to}`}`,
        );
      }
    },
  };
}

/** `fetch` refuses a URL with credentials, and quotes it when it does. */
function withoutCredentials(given: string | URL): { url: URL; authorization: Record<string, string> } {
  const url = new URL(given);
  const { username, password } = url;
  if (username === '' && password === '') return { url, authorization: {} };
  url.username = '';
  url.password = '';
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url, authorization: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } };
}
