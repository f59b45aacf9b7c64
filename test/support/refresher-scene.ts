import { TokenRefresher, type TokenRefresherEvents, type TokenRefresherOptions } from 'resilient-watcher';
import { FakeClock, FakeTokenClient } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

import { ProjectedToken } from './projected-token.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const EVENTS = [
  'token',
  'delivered',
  'undelivered',
  'retry',
  'warning',
  'expired',
  'skew',
  'unhealthy',
  'healthy',
  'unreadable',
  'readable',
  'degraded',
  'recovered',
  'error',
] as const satisfies readonly (keyof TokenRefresherEvents)[];

/** A refresher on fake time, with a fake API server and a projected token that the test replaces; chance is 0. */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- the object below says it
export function refresherScene(options: Partial<TokenRefresherOptions> = {}, now?: number) {
  const clock = new FakeClock(now);
  const client = new FakeTokenClient({ clock });
  const projected = new ProjectedToken('projected-0');
  const refresher = new TokenRefresher({
    client,
    clock,
    random: () => 0,
    tokenFile: projected.path,
    ...(options.tokenFile !== false && { tokenFileOptions: projected.options }),
    ...options,
  });
  onTestFinished(() => refresher.close());
  const log: { event: string; detail: unknown; at: number }[] = [];
  for (const event of EVENTS) {
    refresher.on(event, (detail?: unknown) => void log.push({ event, detail, at: clock.now() }));
  }
  const started = clock.now();
  return {
    clock,
    client,
    projected,
    refresher,
    log,
    /** The events so far, by name. */
    events: (...names: string[]) => log.filter(({ event }) => names.includes(event)),
    /** When each request came, s since the start. */
    mints: () => client.requests.map(({ at }) => (at - started) / SECOND),
    /** Lets what is due at this moment happen. */
    now: () => clock.advance(0),
  };
}
