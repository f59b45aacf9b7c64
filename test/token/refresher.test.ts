/** The refresher in ordinary times: options, the schedule, hints and the clock. */

import { TokenRefresher, type TokenRefresherOptions } from 'resilient-watcher';
import { FakeTokenClient } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { DAY, HOUR, MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';

const boom = new Error('ECONNREFUSED 10.0.0.1:443');

describe('options', () => {
  const client = new FakeTokenClient();
  test.each<[object, typeof TypeError | typeof RangeError, string]>([
    [{ client: undefined }, TypeError, 'option "client" must be an object with requestToken'],
    [{ client: {} }, TypeError, 'option "client" must be an object with requestToken, got an object'],
    [{ tokenFile: '' }, TypeError, 'option "tokenFile" must be a path or false, got ""'],
    [{ tokenFile: true }, TypeError, 'option "tokenFile" must be a path or false, got true'],
    [{ audiences: 'api' }, TypeError, 'option "audiences" must be an array of non-empty strings, got "api"'],
    [{ audiences: [''] }, TypeError, 'option "audiences" must be an array of non-empty strings'],
    [
      { expirationSeconds: 599 },
      RangeError,
      'option "expirationSeconds" must be a finite number between 600',
    ],
    [{ expirationSeconds: NaN }, RangeError, 'option "expirationSeconds" must be'],
    [{ sinks: [{}] }, TypeError, 'option "sinks" must be an array of functions'],
    [{ schedule: 'half' }, TypeError, 'option "schedule" must be one of "quarter", "kubelet", or a function'],
    [
      { refreshIntervalMs: 4_999 },
      RangeError,
      'option "refreshIntervalMs" must be a finite number >= 5000 (ms)',
    ],
    [
      { retryDelayMs: 60_001 },
      RangeError,
      'option "retryDelayMs" must be at most "maxRetryDelayMs" (ms), got 60001 and 60000',
    ],
    [{ minIntervalMs: -1 }, RangeError, 'option "minIntervalMs" must be'],
    [{ attemptTimeoutMs: 0 }, RangeError, 'option "attemptTimeoutMs" must be'],
    [{ unhealthyAfter: 0 }, RangeError, 'option "unhealthyAfter" must be'],
    [{ tokenFileOptions: 1 }, TypeError, 'option "tokenFileOptions" must be an object'],
    [{ tokenFileOptions: { retries: 1 } }, TypeError, 'TokenFile: unknown option "retries"'],
    [{ refreshInterval: 1 }, TypeError, 'unknown option "refreshInterval"'],
  ])('%j are refused', (options, kind, message) => {
    const construct = (): unknown => new TokenRefresher({ client, ...options });
    expect(construct).toThrow(kind);
    expect(construct).toThrow(message);
  });
});

test.for<[Partial<TokenRefresherOptions>, string]>([
  [{ schedule: 'quarter', refreshIntervalMs: 60_000 }, 'give "schedule" or "refreshIntervalMs", not both'],
  [
    { tokenFile: false, tokenFileOptions: { backend: 'poll' } },
    '"tokenFileOptions" has no effect with "tokenFile: false"',
  ],
])('options that exclude each other are refused: %j', ([options, message]) => {
  const construct = (): unknown => new TokenRefresher({ client: new FakeTokenClient(), ...options });
  expect(construct).toThrow(TypeError);
  expect(construct).toThrow(message);
});

describe('the schedule', () => {
  test('a token of one day is replaced after 6 to 12 hours, at random', async () => {
    for (const [chance, hours] of [
      [0, 6],
      [0.5, 9],
    ] as const) {
      const { refresher, clock, mints } = refresherScene({ random: () => chance });
      await refresher.start();
      expect(refresher.status().nextRefreshAt).toBe(clock.now() + hours * HOUR);
      await clock.advance(DAY);
      expect(mints()).toEqual(
        Array.from({ length: Math.floor(24 / hours) + 1 }, (_, index) => index * hours * 3600),
      );
    }
  });

  test('a client that returns its old token until the expiry is called at most every 5 seconds or so', async () => {
    const { refresher, clock, client, events } = refresherScene({ schedule: 'kubelet' });
    client.otherwise = { answer: client.mint(600) };
    await refresher.start();
    await clock.advance(9.9 * MINUTE);
    expect(client.requests.length).toBeLessThan(30);
    expect(events('token')).toHaveLength(1);
  });

  test('refreshIntervalMs overrides it, but never past the expiry', async () => {
    const often = refresherScene({ refreshIntervalMs: HOUR });
    await often.refresher.start();
    await often.clock.advance(3 * HOUR);
    expect(often.mints()).toEqual([0, 3600, 7200, 10_800]);

    const late = refresherScene({ refreshIntervalMs: 48 * HOUR });
    await late.refresher.start();
    await late.clock.advance(DAY);
    expect(late.mints()).toEqual([0, 24 * 3600 - 10]);
    expect(late.events('expired', 'retry')).toEqual([]);
  });

  test.each([
    ['throws', () => void JSON.parse('no')],
    ['answers NaN', () => NaN],
  ])('a schedule of the caller that %s is told on error, and the quarter taken', async (_, schedule) => {
    const { refresher, clock, events } = refresherScene({ schedule: schedule as never });
    await refresher.start();
    expect(events('error')).toHaveLength(1);
    expect(refresher.status().nextRefreshAt).toBe(clock.now() + 6 * HOUR);
  });
});

describe('hints', () => {
  test('a newly projected token leads to an attempt within seconds, where the timer would take 6 to 12 hours', async () => {
    const { refresher, clock, client, projected, mints, events } = refresherScene({ random: () => 0.5 });
    await refresher.start();
    await clock.advance(10 * MINUTE);
    client.rotateSigningKey();
    expect(client.accepts((await refresher.get()).value)).toBe(false);
    projected.show('projected-1');
    await clock.advance(5 * SECOND);
    expect(mints()).toEqual([0, 602.5]);
    expect(client.accepts((await refresher.get()).value)).toBe(true);
    expect(events('token').map(({ detail }) => (detail as { reason: string }).reason)).toEqual([
      'start',
      'file',
    ]);
  });

  test('a burst of hints leads to one attempt, and to one more if it comes during an attempt', async () => {
    const { refresher, clock, client, projected, mints } = refresherScene();
    await refresher.start();
    await clock.advance(MINUTE);
    client.script({ delayMs: 2_000 });
    for (let n = 1; n <= 50; n += 1) projected.show(`burst-${n}`);
    const refreshes = Array.from({ length: 50 }, () => refresher.refresh());
    await clock.advance(500);
    expect(client.inFlight).toBe(1);
    projected.show('during-1');
    projected.show('during-2');
    await clock.advance(MINUTE);
    expect(mints()).toEqual([0, 60, 62]);
    expect(new Set(await Promise.all(refreshes)).size).toBe(1);
    expect(client.mostInFlight).toBe(1);
  });

  test('attempts begin at least minIntervalMs apart, whatever the hints', async () => {
    const { refresher, clock, mints } = refresherScene();
    await refresher.start();
    for (let n = 0; n < 100; n += 1) {
      void refresher.refresh();
      await clock.advance(100);
    }
    expect(mints()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('a 401 leads to one attempt, and to none for a token that is no longer current', async () => {
    const { refresher, clock, client, mints } = refresherScene();
    await refresher.start();
    await clock.advance(HOUR);
    const old = await refresher.get();
    client.rotateSigningKey();
    const answers = Array.from({ length: 20 }, () => refresher.reportUnauthorized(old));
    await clock.advance(MINUTE);
    const [next] = await Promise.all(answers);
    expect(client.accepts(next?.value ?? '')).toBe(true);
    expect((await refresher.reportUnauthorized(old)).equals(next)).toBe(true);
    await clock.advance(MINUTE);
    expect(mints()).toEqual([0, 3600]);
  });

  test('a 401 for a token that the server returned again is answered within a minute, not by the schedule', async () => {
    const { refresher, clock, client, mints } = refresherScene();
    client.otherwise = { answer: client.mint(86_400) };
    await refresher.start();
    const token = await refresher.get();
    for (let report = 0; report < 10; report += 1) {
      const answer = refresher.reportUnauthorized(token);
      await clock.advance(MINUTE);
      expect(await Promise.race([answer, Promise.resolve('none')])).toBe(token);
    }
    client.otherwise = {};
    const answer = refresher.reportUnauthorized(token);
    await clock.advance(MINUTE);
    expect(await Promise.race([answer, Promise.resolve(token)])).not.toBe(token);
    expect(mints().length).toBeLessThanOrEqual(12);
  });

  test('a server that refuses every token is not hammered with requests for more', async () => {
    const { refresher, clock, client } = refresherScene();
    await refresher.start();
    refresher.on('token', ({ token }) => void refresher.reportUnauthorized(token));
    void refresher.reportUnauthorized(await refresher.get());
    await clock.advance(HOUR);
    expect(client.requests.length).toBeLessThan(70);
  });

  test('a refusal long after others is answered as soon as the first one was', async () => {
    const { refresher, clock, client } = refresherScene({ wakeJitterMs: 0, minIntervalMs: 0 });
    await refresher.start();
    for (let count = 0; count < 6; count += 1) {
      void refresher.reportUnauthorized(await refresher.get());
      await clock.advance(10 * MINUTE);
    }
    // It is accepted until the schedule replaces it.
    await clock.advance(DAY);
    const { length } = client.requests;
    void refresher.reportUnauthorized(await refresher.get());
    await clock.advance(1);
    expect(client.requests).toHaveLength(length + 1);
    // Now two in a row.
    void refresher.reportUnauthorized(await refresher.get());
    await clock.advance(30_000);
    expect(client.requests).toHaveLength(length + 2);
  });
});

test('its status is plain data, null for what is not known', async () => {
  const { refresher, client } = refresherScene({ name: 'cni' });
  expect(refresher.current).toBeUndefined();
  expect(refresher.state).toBe('idle');
  client.script({ error: boom });
  await refresher.start();
  expect(JSON.parse(JSON.stringify(refresher))).toMatchObject({
    name: 'cni',
    state: 'retrying',
    issuedAt: null,
    expiresAt: null,
    lastMintAt: null,
    lastDeliveryAt: null,
    lastError: { name: 'TokenError', code: 'ERR_TOKEN_REQUEST' },
  });
});

describe('the clock', () => {
  test('after a jump back a token dated ahead is replaced at the next check', async () => {
    const { refresher, clock, mints, events } = refresherScene();
    await refresher.start();
    clock.jump(-54 * DAY);
    await clock.advance(MINUTE);
    expect(mints()).toHaveLength(2);
    expect(events('token')).toMatchObject([{}, { detail: { reason: 'clock' } }]);
    expect(events('skew')).toEqual([]);
    expect(refresher.status().skewMs).toBe(0);
    expect((await refresher.get()).aheadMs(clock.now())).toBe(0);
  });

  test('a jump back that leaves the token valid does not change the plan', async () => {
    const { refresher, clock, mints } = refresherScene();
    await refresher.start();
    await clock.advance(5 * HOUR);
    clock.jump(-HOUR);
    await clock.advance(HOUR);
    expect(mints()).toEqual([0, 21_600 - 3_600]);
  });

  test('a jump forward past the plan refreshes at the next check; past the expiry get() waits for it', async () => {
    const { refresher, clock, mints } = refresherScene();
    await refresher.start();
    clock.jump(7 * HOUR);
    await clock.advance(MINUTE);
    expect(mints()).toHaveLength(2);
    clock.jump(DAY);
    const token = refresher.get();
    await clock.advance(SECOND);
    expect((await token).expiresAt).toBeGreaterThan(clock.now());
    expect(mints()).toHaveLength(3);
  });

  test('a new token dated ahead is used, reported as `skew` once, and replaced by its own lifetime', async () => {
    const { refresher, clock, client, mints, events } = refresherScene();
    client.skewMs = 54 * DAY;
    await refresher.start();
    expect((await refresher.get()).aheadMs(clock.now())).toBe(54 * DAY);
    await clock.advance(DAY);
    expect(events('skew')).toMatchObject([{ detail: { aheadMs: 54 * DAY } }]);
    expect(mints()).toEqual([0, 21_600, 43_200, 64_800, 86_400]);
    client.skewMs = 0;
    await clock.advance(6 * HOUR);
    expect(refresher.status().skewMs).toBe(0);
  });

  test('with a clock that is ahead by nearly the life of a token, requests are at least 5 s apart', async () => {
    const { refresher, clock, client, mints } = refresherScene({ expirationSeconds: 600 });
    client.skewMs = -599 * SECOND;
    await refresher.start();
    for (let second = 0; second < 60; second += 1) {
      // Whoever needs a token asks for it.
      void refresher.get().catch(() => {});
      await clock.advance(SECOND);
    }
    expect(mints().length).toBeGreaterThan(5);
    expect(mints().length).toBeLessThanOrEqual(13);
  });

  test('a token dated ahead within the leeway of the server is not reported as skew', async () => {
    const { refresher, client, events } = refresherScene();
    client.skewMs = MINUTE;
    await refresher.start();
    expect(events('skew')).toEqual([]);
  });
});
