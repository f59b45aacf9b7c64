import type { ServerResponse } from 'node:http';

import type { ComponentHandle } from '../core/telemetry/telemetry-messages.js';
import { hasMethods } from '../core/options/options.js';

/** The result for one component. */
export interface HealthCheck {
  readonly component: string;
  readonly name: string;
  readonly live: boolean;
  readonly ready: boolean;
  /** Why the component is not live or not ready; null if it is both. */
  readonly reason: string | null;
}

/** The result of a probe. Plain data without contents. */
export interface Health {
  /** Whether all components are live. */
  readonly live: boolean;
  /** Whether all components are live and ready. */
  readonly ready: boolean;
  readonly checks: readonly HealthCheck[];
}

/**
 * Whether the components are working.
 *
 * | component                         | live if                               | ready if                             |
 * |-----------------------------------|---------------------------------------|--------------------------------------|
 * | `ResilientWatcher`                | a check ended in the last 3 intervals | contents have been read              |
 * | `ConfigLoader`                    | always                                | loaded, and the last reload was good |
 * | `TokenRefresher`                  | always                                | an unexpired token                   |
 * | `TokenFile`, `TlsFiles`           | always                                | an unexpired token or certificate    |
 * | `AtomicVolume`, `VolumePublisher` | always                                | not closed                           |
 * | others                            | always                                | running, unless its page says more   |
 *
 * A blocked event loop answers no probe. A watcher that polls, or whose file is mounted with `subPath`, is live. A
 * component that is closed is not ready. Intervals are measured by the monotonic clock, so a jump of the wall clock
 * does not affect liveness; the first one begins with `start()`. Expiry is judged by the component's own clock.
 * @throws {TypeError} for something that is not a component of this library.
 */
export function healthOf(...components: readonly ComponentHandle[]): Health {
  assertComponents('healthOf', components);
  const checks = components.map(checkOf);
  const live = checks.every((check) => check.live);
  return { live, ready: live && checks.every((check) => check.ready), checks };
}

/** @throws {TypeError} for something that is not a component of this library. */
export function assertComponents(owner: string, components: readonly unknown[]): void {
  if (components.every((component) => hasMethods(component, ['status', 'health']))) return;
  throw new TypeError(
    `${owner}: every argument must be a component of this library, such as a ResilientWatcher`,
  );
}

function checkOf(component: ComponentHandle): HealthCheck {
  const { dead, unready } = component.health();
  return {
    component: component.kind,
    name: component.name,
    live: dead === undefined,
    ready: dead === undefined && unready === undefined,
    reason: dead ?? unready ?? null,
  };
}

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
