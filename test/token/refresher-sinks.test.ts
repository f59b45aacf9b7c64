/** Where tokens are delivered to, and what is left to do at the end. */
import { getEventListeners } from 'node:events';

import { ClosedError, type TokenRefresherOptions } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { fsWith } from '../support/intercepted-fs.js';
import { DAY, HOUR, MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';

const boom = new Error('ECONNREFUSED 10.0.0.1:443');

describe('sinks', () => {
  test('each is retried alone, without another request, and does not delay the others', async () => {
    const good: string[] = [];
    let failures = 3;
    const { refresher, clock, mints, log, events } = refresherScene({
      sinks: [
        function disk() {
          if ((failures -= 1) >= 0) throw new Error('ENOSPC');
        },
        (token) => void good.push(token.value),
      ],
    });
    await refresher.start();
    expect(good).toEqual([(await refresher.get()).value]);
    expect(refresher.status().sinks).toMatchObject([
      {
        name: 'disk',
        state: 'retrying',
        consecutiveFailures: 1,
        lastError: { code: 'ERR_TOKEN_SINK', message: expect.stringContaining('ENOSPC') as string },
      },
      { state: 'idle', consecutiveFailures: 0 },
    ]);
    await clock.advance(10 * MINUTE);
    expect(events('undelivered').map(({ at }) => at - (log[0]?.at ?? 0))).toEqual([0, 10_000, 30_000]);
    expect(events('delivered').map(({ detail }) => (detail as { sink: string }).sink)).toContain('disk');
    expect(mints()).toEqual([0]);
  });

  test('one that has accepted a token is retried as soon as at first when it fails again', async () => {
    let failures = 3;
    const { refresher, clock, now, events } = refresherScene({
      sinks: [
        () => {
          if ((failures -= 1) >= 0) throw new Error('ENOSPC');
        },
      ],
    });
    await refresher.start();
    await clock.advance(10 * MINUTE);
    expect(refresher.status().sinks).toMatchObject([{ state: 'idle' }]);
    failures = 1;
    const again = refresher.refresh();
    await now();
    await again;
    await clock.advance(10 * SECOND);
    expect(events('delivered')).toHaveLength(2);
  });

  test('a newer token replaces one that could not be delivered', async () => {
    const seen: string[] = [];
    const { refresher, clock, now } = refresherScene({
      sinks: [
        (token) => {
          seen.push(token.value);
          if (seen.length === 1) throw new Error('no');
        },
      ],
    });
    await refresher.start();
    const first = await refresher.get();
    await clock.advance(2 * SECOND);
    const second = refresher.refresh();
    await now();
    expect(seen).toEqual([first.value, (await second).value]);
    await clock.advance(HOUR);
    expect(seen).toHaveLength(2);
  });

  test('one that does not settle is aborted, delays no other, and is never called twice at once', async () => {
    const calls: { signal: AbortSignal; token: string; end: () => void }[] = [];
    const { refresher, clock, mints, events } = refresherScene({
      sinks: [
        (token, { signal }) =>
          new Promise<void>((end) => void calls.push({ signal, token: token.value, end: () => end() })),
      ],
    });
    const started = refresher.start();
    await clock.advance(30 * SECOND);
    await started;
    expect(calls[0]?.signal.aborted).toBe(true);
    expect(refresher.status().sinks).toMatchObject([{ state: 'overdue', consecutiveFailures: 1 }]);
    await clock.advance(6 * HOUR);
    expect(mints()).toHaveLength(2);
    expect(calls).toHaveLength(1);
    calls[0]?.end();
    await clock.advance(0);
    expect(calls.map(({ token }) => token)).toEqual([calls[0]?.token, (await refresher.get()).value]);
    calls[1]?.end();
    await clock.advance(0);
    expect(events('delivered')).toHaveLength(2);
    expect(refresher.status().sinks).toMatchObject([{ state: 'idle', consecutiveFailures: 0 }]);
  });
});

describe('the end', () => {
  test.each<
    [string, () => Partial<TokenRefresherOptions>, (scene: ReturnType<typeof refresherScene>) => void]
  >([
    ['before start()', () => ({}), () => {}],
    ['while it waits', () => ({}), () => {}],
    ['during a mint', () => ({}), ({ client }) => client.script({ delayMs: Infinity })],
    ['between two attempts', () => ({}), ({ client }) => client.script({ error: boom })],
    [
      'while the file system hangs',
      () => ({ fs: fsWith({ lstat: () => new Promise(() => {}) }, 'remote') }),
      () => {},
    ],
    ['without native watching', () => ({}), ({ projected }) => projected.backend.refuse(boom)],
    ['between two deliveries', () => ({ sinks: [() => Promise.reject(boom)] }), () => {}],
    [
      'during a delivery that fails when it is aborted',
      () => ({
        sinks: [
          (_token, { signal }) =>
            new Promise<void>((_, fail) => signal.addEventListener('abort', () => fail(boom))),
        ],
      }),
      () => {},
    ],
  ])('close() %s leaves no timer and no listener, and no event follows', async (when, options, arrange) => {
    const controller = new AbortController();
    const scene = refresherScene({ ...options(), signal: controller.signal });
    const { refresher, clock, projected, log } = scene;
    arrange(scene);
    const started = when === 'before start()' ? undefined : refresher.start();
    started?.catch(() => {});
    await clock.advance(0);
    await refresher.close();
    const told = log.length;
    expect(clock.pending).toBe(0);
    expect(projected.backend.subscriptions).toBe(0);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    await clock.advance(DAY);
    expect(log).toHaveLength(told);
    await expect(refresher.start())
      .rejects.toThrow(ClosedError)
      .catch(() => started);
    await expect(refresher.get()).rejects.toThrow(ClosedError);
    await expect(refresher.refresh()).rejects.toThrow(ClosedError);
    expect(refresher.close()).toBe(refresher.close());
    expect(refresher.status().state).toBe('closed');
  });

  test('it waits for a sink in progress, for 5 s at most', async () => {
    const write = new Outcome<undefined>();
    const { refresher, clock } = refresherScene({ sinks: [() => write.promise] });
    void refresher.start();
    await clock.advance(0);
    let closed = false;
    const closing = refresher.close().then(() => (closed = true));
    await clock.advance(4_999);
    expect(closed).toBe(false);
    write.resolve(undefined);
    await closing;
    expect(clock.pending).toBe(0);

    const stuck = refresherScene({ sinks: [() => new Promise<void>(() => {})] });
    void stuck.refresher.start();
    await stuck.clock.advance(0);
    const ending = stuck.refresher.close();
    await stuck.clock.advance(5_000);
    await ending;
    expect(stuck.clock.pending).toBe(0);
  });

  test.each<[string, (close: () => void) => Partial<TokenRefresherOptions>]>([
    ['a sink', (close) => ({ sinks: [close] })],
    ['the schedule', (close) => ({ schedule: () => (close(), HOUR) })],
  ])('called by %s it leaves no timer', async (_, optionsOf) => {
    const { refresher, clock, events } = refresherScene(optionsOf(() => void refresher.close()));
    void refresher.start();
    await clock.advance(SECOND);
    await refresher.close();
    expect(clock.pending).toBe(0);
    expect(events('token', 'delivered')).toEqual([]);
  });

  test('called by the schedule it keeps the token from every sink', async () => {
    const { refresher, clock } = refresherScene({
      schedule: () => (void refresher.close(), HOUR),
      sinks: [() => {}],
    });
    void refresher.start();
    await clock.advance(0);
    expect(refresher.status().sinks).toMatchObject([{ state: 'idle', lastDeliveryAt: null }]);
  });

  test('called by a sink it waits for that sink, too', async () => {
    const answer = new Outcome<void>();
    const closed: string[] = [];
    const { refresher, clock } = refresherScene({
      sinks: [
        () => {
          void refresher.close().then(() => closed.push('closed'));
          return answer.promise;
        },
      ],
    });
    void refresher.start();
    await clock.advance(SECOND);
    expect(closed).toEqual([]);
    answer.resolve();
    await clock.advance(0);
    expect(closed).toEqual(['closed']);
  });
});
