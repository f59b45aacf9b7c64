import { ActionError } from '../core/errors.js';
import type { ValueSource } from '../core/value-source.js';
import type { Action } from './action.js';

/** Options of `webhookAction`. */
export interface WebhookActionOptions {
  readonly url: string | URL;
  /** Default `POST`. */
  readonly method?: string | undefined;
  /** The range of status codes that mean success. Default 200 to 299. */
  readonly status?: readonly [from: number, to: number] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as a bearer token; such a request follows no redirect. */
  readonly token?: Pick<ValueSource<{ readonly value: string } | string>, 'get'> | undefined;
}

/** Calls a URL with the update as its JSON body. Its time is bounded by the `timeoutMs` of the `ReloadAction`. */
export function webhookAction({
  url,
  method = 'POST',
  status: [from, to] = [200, 299],
  headers = {},
  token,
}: WebhookActionOptions): Action {
  const { origin, pathname } = new URL(url);
  // Without the query, which may contain a secret.
  const name = `${method} ${origin}${pathname}`;
  return {
    name,
    async run(update, { signal }) {
      const sent: Record<string, string> = { 'content-type': 'application/json', ...headers };
      if (token) {
        const value = await token.get();
        sent['authorization'] = `Bearer ${typeof value === 'string' ? value : value.value}`;
      }
      const hasBody = method !== 'GET' && method !== 'HEAD';
      let response: Response;
      try {
        response = await fetch(url, {
          method,
          headers: sent,
          signal,
          redirect: token ? 'error' : 'follow',
          ...(hasBody && { body: JSON.stringify(update) }),
        });
      } catch (cause) {
        const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
        const message = reason instanceof Error ? reason.message : String(reason);
        throw new ActionError('ERR_ACTION_WEBHOOK', `Action ${name} failed: ${message}`);
      }
      // The body is not needed, and may never end.
      await response.body?.cancel();
      if (response.status < from || response.status > to) {
        const reason = `it answered with status ${response.status}, wanted ${from} to ${to}`;
        throw new ActionError('ERR_ACTION_WEBHOOK', `Action ${name} failed: ${reason}`);
      }
    },
  };
}
