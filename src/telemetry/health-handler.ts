import type { ServerResponse } from 'node:http';

import type { ComponentHandle } from '../core/telemetry-messages.js';
import { assertComponents, healthOf } from './health.js';

/** The request of `node:http`, Express or Fastify. */
export interface HealthRequest {
  readonly url?: string | undefined;
  /** Express: the URL before routers removed their part of it. */
  readonly originalUrl?: string | undefined;
}

/** The reply of Fastify. */
export interface HealthReply {
  code(status: number): HealthReply;
  type(contentType: string): HealthReply;
  send(body: string): unknown;
}

type Response = Pick<ServerResponse, 'writeHead' | 'end'>;

const IS_LIVENESS = /\/(live|livez|healthz)\/?$/;

/**
 * Creates a handler that answers probes, for `node:http`, Express or Fastify: 200, or 503 if a component is not live
 * or not ready, with `healthOf(...)` as JSON. Paths that end in `live`, `livez` or `healthz` ask for `live`, all
 * others for `ready`. Any answer shows that the event loop is not blocked.
 *
 * ```ts
 * app.get('/livez', healthHandler(watcher, refresher));
 * app.get('/readyz', healthHandler(watcher, refresher));
 * ```
 * @throws {TypeError} for something that is not a component of this library.
 */
export function healthHandler(
  ...components: readonly ComponentHandle[]
): (request: HealthRequest, response: Response | HealthReply) => unknown {
  assertComponents('healthHandler', components);
  return ({ originalUrl, url = '/' }, response) => {
    const health = healthOf(...components);
    const [path = ''] = (originalUrl ?? url).split('?');
    const isGood = IS_LIVENESS.test(path) ? health.live : health.ready;
    const body = JSON.stringify(health);
    const status = isGood ? 200 : 503;
    if ('send' in response && 'code' in response) {
      return response.code(status).type('application/json').send(body);
    }
    response.writeHead(status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
    return response.end(body);
  };
}
