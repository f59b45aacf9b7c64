import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import {
  BackendError,
  ClosedError,
  TokenError,
  TokenRefresher,
  type TokenRefresherOptions,
} from 'resilient-watcher';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { Outcome } from '../../src/core/outcome.js';
import { DAY, HOUR, MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';
import { ScriptedWatchers } from '../support/scripted-watcher.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

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
    [{ minIntervalMs: -1 }, RangeError, 'option "minIntervalMs" must be'],
    [{ attemptTimeoutMs: 0 }, RangeError, 'option "attemptTimeoutMs" must be'],
    [{ unhealthyAfter: 0 }, RangeError, 'option "unhealthyAfter" must be'],
    [{ watcherFactory: 1 }, TypeError, 'option "watcherFactory" must be a function'],
    [{ refreshInterval: 1 }, TypeError, 'unknown option "refreshInterval"'],
  ])('%j are refused', (options, kind, message) => {
    const construct = (): unknown => new TokenRefresher({ client, ...options });
    expect(construct).toThrow(kind);
    expect(construct).toThrow(`TokenRefresher: ${message}`);
  });
});

test.for<[Partial<TokenRefresherOptions>, string]>([
  [{ schedule: 'quarter', refreshIntervalMs: 60_000 }, 'give "schedule" or "refreshIntervalMs", not both'],
  [
    { tokenFile: false, watcherFactory: new ScriptedWatchers().factory },
    '"watcherFactory" has no effect with "tokenFile: false"',
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

  test('a token of one year is replaced daily, not in a loop, and no long delay reaches a timer', async () => {
    const { refresher, clock, client, mints } = refresherScene();
    const year = 365 * 24 * 3600;
    client.otherwise = { answer: client.mint(year) };
    await refresher.start();
    for (let hour = 0; hour < 72; hour += 1) {
      expect(Math.max(...clock.delays)).toBeLessThanOrEqual(MINUTE);
      await clock.advance(HOUR);
    }
    expect(mints()).toEqual([0, 86_400, 172_800, 259_200]);
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
    const { refresher, clock, client, watchers, mints, events } = refresherScene({ random: () => 0.5 });
    await refresher.start();
    await clock.advance(10 * MINUTE);
    client.rotateSigningKey();
    expect(client.accepts((await refresher.get()).value)).toBe(false);
    watchers.show('projected-1');
    await clock.advance(5 * SECOND);
    expect(mints()).toEqual([0, 602.5]);
    expect(client.accepts((await refresher.get()).value)).toBe(true);
    expect(events('token').map(({ detail }) => (detail as { reason: string }).reason)).toEqual([
      'start',
      'file',
    ]);
  });

  test('only new content leads to an attempt: not the first check, the same bytes, an empty or a missing file', async () => {
    const { refresher, clock, watchers, mints } = refresherScene();
    await refresher.start();
    watchers.show('projected-0');
    watchers.show(undefined);
    watchers.show(' \n');
    watchers.show('projected-0\n');
    await clock.advance(MINUTE);
    expect(mints()).toEqual([0]);
  });

  test('a burst of hints leads to one attempt, and to one more if it comes during an attempt', async () => {
    const { refresher, clock, client, watchers, mints } = refresherScene();
    await refresher.start();
    await clock.advance(MINUTE);
    client.script({ delayMs: 2_000 });
    for (let n = 1; n <= 50; n += 1) watchers.show(`burst-${n}`);
    const refreshes = Array.from({ length: 50 }, () => refresher.refresh());
    await clock.advance(500);
    expect(client.inFlight).toBe(1);
    watchers.show('during-1');
    watchers.show('during-2');
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

  test('a server that refuses every token is not hammered with requests for more', async () => {
    const { refresher, clock, client } = refresherScene();
    await refresher.start();
    refresher.on('token', ({ token }) => void refresher.reportUnauthorized(token));
    void refresher.reportUnauthorized(await refresher.get());
    await clock.advance(HOUR);
    expect(client.requests.length).toBeLessThan(70);
  });
});

describe('failure', () => {
  test('it is retried after 10, 20, 40, 60, 60 s with up to 50 % jitter; the token is kept', async () => {
    const { refresher, clock, client, mints, events } = refresherScene();
    await refresher.start();
    const token = await refresher.get();
    client.otherwise = { error: boom };
    await clock.advance(6 * HOUR + 190 * SECOND);
    expect(
      mints()
        .slice(1)
        .map((at) => at - 21_600),
    ).toEqual([0, 10, 30, 70, 130, 190]);
    expect(await refresher.get()).toBe(token);
    client.otherwise = {};
    await clock.advance(MINUTE);
    expect(events('unhealthy', 'healthy').map(({ event }) => event)).toEqual(['unhealthy', 'healthy']);
    expect(refresher.status()).toMatchObject({ state: 'waiting', consecutiveFailures: 0, healthy: true });
  });

  test.each<[string, unknown, string]>([
    ['an Error', boom, 'ECONNREFUSED'],
    ['a TypeError, as of broken JSON', new TypeError('fetch failed'), 'fetch failed'],
    ['a word', 'nope', 'nope'],
    ['null', null, 'null'],
  ])('%s thrown by the client is a failure like any other', async (_, error, text) => {
    const { refresher, clock, client, events } = refresherScene();
    client.script({ error });
    await refresher.start();
    await expect(refresher.get()).rejects.toMatchObject({
      code: 'ERR_TOKEN_UNAVAILABLE',
      cause: { code: 'ERR_TOKEN_REQUEST', message: expect.stringContaining(text) as string },
    });
    await clock.advance(10 * SECOND);
    expect(events('retry', 'token').map(({ event }) => event)).toEqual(['retry', 'token']);
  });

  test('a client that throws synchronously is a failure like any other', async () => {
    const { refresher, clock, client } = refresherScene({
      client: {
        requestToken: () => {
          throw boom;
        },
      },
    });
    await refresher.start();
    await clock.advance(MINUTE);
    expect(refresher.status()).toMatchObject({ state: 'retrying', consecutiveFailures: 3 });
    expect(client.requests).toEqual([]);
  });

  test.each<[string, (client: FakeTokenClient) => unknown, string]>([
    ['empty', () => ({ token: '', expirationTimestamp: 1e13 }), 'ERR_TOKEN_MALFORMED'],
    ['not a JWT', () => ({ token: 'abc', expirationTimestamp: 1e13 }), 'ERR_TOKEN_MALFORMED'],
    ['without expiry', () => ({ token: mintTestToken() }), 'ERR_TOKEN_MALFORMED'],
    ['over already', (client) => client.mint(-1), 'ERR_TOKEN_EXPIRED'],
  ])('an answer that is %s is a failed attempt, and nothing is delivered', async (_, answer, code) => {
    const delivered: string[] = [];
    const { refresher, clock, client, events } = refresherScene({
      sinks: [(token) => void delivered.push(token.value)],
    });
    await refresher.start();
    const good = await refresher.get();
    client.script({ answer: answer(client) });
    await clock.advance(6 * HOUR);
    expect(events('retry').map(({ detail }) => (detail as { error: TokenError }).error.code)).toEqual([code]);
    expect(await refresher.get()).toBe(good);
    expect(delivered).toEqual([good.value]);
  });

  test('Retry-After is honoured, whatever the hints, up to 5 minutes', async () => {
    const { refresher, clock, client, watchers, mints } = refresherScene();
    client.script(
      { error: FakeTokenClient.tooManyRequests(90 * SECOND) },
      { error: Object.assign(new Error('503'), { retryAfterMs: DAY }) },
    );
    await refresher.start();
    await clock.advance(30 * SECOND);
    watchers.show('projected-1');
    void refresher.refresh();
    await clock.advance(10 * MINUTE);
    expect(mints().slice(0, 3)).toEqual([0, 90, 390]);
  });

  test('a jump of the clock does not shorten a Retry-After', async () => {
    const { refresher, clock, client } = refresherScene();
    const began: number[] = [];
    refresher.on('retry', () => began.push(clock.monotonic()));
    client.script({ error: FakeTokenClient.tooManyRequests(4 * MINUTE) }, { error: boom });
    await refresher.start();
    clock.jump(HOUR);
    await clock.advance(5 * MINUTE);
    expect(began).toEqual([0, 4 * MINUTE]);
  });

  test('an attempt that is never answered times out, and its late answer is ignored', async () => {
    const late = new Outcome<never>();
    const signals: AbortSignal[] = [];
    const { refresher, clock, events } = refresherScene({
      client: {
        requestToken: (_, { signal }) => {
          signals.push(signal);
          return late.promise;
        },
      },
    });
    const started = refresher.start();
    await clock.advance(10 * SECOND);
    await started;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(events('retry')).toMatchObject([{ detail: { error: { code: 'ERR_TOKEN_TIMEOUT' } } }]);
    late.resolve(new FakeTokenClient({ clock }).mint() as never);
    await clock.advance(0);
    expect(events('token')).toEqual([]);
  });

  test('once the token has expired, get() rejects with the last failure as its cause, and `expired` is emitted once', async () => {
    const { refresher, clock, client, events } = refresherScene();
    await refresher.start();
    const { expiresAt } = await refresher.get();
    client.otherwise = { error: boom };
    await clock.advance(DAY - 1);
    expect(await refresher.get()).toBeDefined();
    expect(events('expired')).toEqual([]);
    await clock.advance(1);
    expect(events('expired')).toMatchObject([
      { at: expiresAt, detail: { current: refresher.current, error: { code: 'ERR_TOKEN_REQUEST' } } },
    ]);
    await clock.advance(HOUR);
    await expect(refresher.get()).rejects.toMatchObject({
      code: 'ERR_TOKEN_EXPIRED',
      cause: { code: 'ERR_TOKEN_REQUEST', cause: boom },
    });
    expect(events('expired')).toHaveLength(1);
    expect(refresher.status().healthy).toBe(false);
    client.otherwise = {};
    await clock.advance(MINUTE);
    expect((await refresher.get()).expiresAt).toBeGreaterThan(clock.now());
    expect(events('healthy')).toHaveLength(1);
  });

  test('refresh() rejects when its attempt fails, and may be ignored', async () => {
    const { refresher, clock, client, now } = refresherScene();
    await refresher.start();
    await clock.advance(MINUTE);
    client.script({ error: boom });
    void refresher.refresh();
    const refreshed = refresher.refresh();
    await now();
    await expect(refreshed).rejects.toMatchObject({ code: 'ERR_TOKEN_REQUEST' });
  });
});

test('a client that cannot work is reported once as an `error`, and not called again', async () => {
  const { refresher, clock, client, events } = refresherScene();
  const error = new TokenError('ERR_TOKEN_CLIENT', 'npm install it');
  client.otherwise = { error };
  await refresher.start();
  await clock.advance(DAY);
  void refresher.refresh();
  await clock.advance(DAY);
  expect(client.requests).toHaveLength(1);
  expect(events('retry')).toEqual([]);
  expect(events('error')).toMatchObject([
    { detail: { code: 'ERR_TOKEN_CLIENT', message: 'npm install it' } },
  ]);
  expect(refresher.status()).toMatchObject({
    state: 'failed',
    healthy: false,
    nextRefreshAt: null,
    lastError: { code: 'ERR_TOKEN_CLIENT' },
  });
  await expect(refresher.get()).rejects.toMatchObject({
    code: 'ERR_TOKEN_UNAVAILABLE',
    cause: { code: 'ERR_TOKEN_CLIENT' },
  });
  await refresher.close();
  expect(clock.pending).toBe(0);
});

test('the token just seen in the file is passed to the client', async () => {
  const { refresher, clock, client, watchers } = refresherScene();
  const start = clock.now();
  await refresher.start();
  await clock.advance(MINUTE);
  watchers.show('projected-1');
  await clock.advance(MINUTE);
  expect(client.requests.map(({ credential }) => [credential?.value, credential?.path])).toEqual([
    ['projected-0', '/nowhere/token'],
    ['projected-1', '/nowhere/token'],
  ]);
  expect(client.requests.map(({ credential }) => (credential?.seenAt ?? 0) - start)).toEqual([0, MINUTE]);
  expect(inspect(client.requests, { depth: Infinity }) + JSON.stringify(client.requests)).not.toMatch(
    /projected-[01]/,
  );
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

  test('a token dated ahead within the leeway of the server is not reported as skew', async () => {
    const { refresher, client, events } = refresherScene();
    client.skewMs = MINUTE;
    await refresher.start();
    expect(events('skew')).toEqual([]);
  });
});

describe('without a TokenRequest API', () => {
  test("the projected file's own token is used, by warnafter and not by its year", async () => {
    // The token of the incident, read on 2024-02-06: its nbf is 54 days ahead, its exp a year away.
    const file = join(temporaryDirectory(), 'token');
    const dates = { iat: 1711900695, nbf: 1711900695, exp: 1743436695 };
    writeFileSync(file, mintTestToken({ ...dates, 'kubernetes.io': { warnafter: 1711904302 } }));
    const scene = refresherScene({ tokenFile: file }, Date.UTC(2024, 1, 6));
    const { refresher, clock, client, events } = scene;
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    expect(await refresher.get()).toMatchObject({ expiresAt: 1711904302000, notAfter: 1743436695000 });
    expect(events('skew')).toMatchObject([{ detail: { aheadMs: 1711900695000 - Date.UTC(2024, 1, 6) } }]);
    expect(refresher.status().nextRefreshAt).toBe(clock.now() + 3_607_000 / 4);
    expect(events('token', 'skew', 'retry')).toHaveLength(2);
  });

  test('the file is read a few times an hour, and the next token is found when it is projected', async () => {
    const file = join(temporaryDirectory(), 'token');
    const now = Date.UTC(2024, 1, 6);
    const write = (at: number): void => {
      const iat = at / 1000;
      const claims = { iat, exp: iat + 31_536_000, 'kubernetes.io': { warnafter: iat + 3607 } };
      writeFileSync(file, mintTestToken(claims));
    };
    write(now);
    const { refresher, clock, client, watchers, events } = refresherScene({ tokenFile: file }, now);
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    await idleAdvance(clock, refresher, 48 * MINUTE);
    expect(client.requests.length).toBeLessThan(20);
    write(clock.now());
    watchers.show('projected-1');
    await idleAdvance(clock, refresher, MINUTE);
    expect(events('token')).toHaveLength(2);
    expect(events('retry', 'expired')).toEqual([]);
  });

  test('a token that never expires has no expiry in the status, which stays plain data', async () => {
    const file = join(temporaryDirectory(), 'token');
    writeFileSync(file, mintTestToken({ iat: 1_700_000_000 }));
    const { refresher, client } = refresherScene({ tokenFile: file });
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    expect(refresher.current?.expiresAt).toBe(Infinity);
    expect(refresher.status()).toMatchObject({ healthy: true, expiresAt: null });
    expect(JSON.parse(JSON.stringify(refresher))).toEqual(refresher.status());
  });

  test('without a file the attempt fails with that error', async () => {
    const { refresher, client, events } = refresherScene({ tokenFile: false });
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    expect(events('retry')).toMatchObject([{ detail: { error: { code: 'ERR_TOKEN_UNSUPPORTED' } } }]);
  });

  /** Reading a real file takes real time, so fake time waits for it. */
  async function idleAdvance(
    clock: { advance(ms: number): Promise<void> },
    refresher: TokenRefresher,
    ms: number,
  ): Promise<void> {
    for (let passed = 0; passed < ms; passed += SECOND) {
      await clock.advance(SECOND);
      await refresher.idle();
    }
  }
});

describe('a failing watcher never affects the token', () => {
  test.each<[string, (watchers: ReturnType<typeof refresherScene>['watchers']) => void]>([
    ['cannot be started', (watchers) => watchers.refusals.push(boom, boom)],
    [
      'fails with a TypeError',
      (watchers) => watchers.refusals.push(new TypeError('no'), new TypeError('no')),
    ],
    ['never starts', (watchers) => watchers.refusals.push(undefined, undefined)],
  ])(
    'a watcher that %s is reported as degraded, tried again, and reported as recovered',
    async (_, arrange) => {
      const { refresher, clock, watchers, mints, events } = refresherScene();
      arrange(watchers);
      const started = refresher.start();
      await clock.advance(10 * SECOND);
      await started;
      expect(mints()).toHaveLength(1);
      expect(events('degraded')).toMatchObject([
        { detail: { error: { code: 'ERR_BACKEND_UNAVAILABLE' }, pollIntervalMs: 60_000 } },
      ]);
      expect(refresher.status()).toMatchObject({ watching: false, healthy: true });
      await clock.advance(MINUTE);
      expect(events('degraded', 'recovered').map(({ event }) => event)).toEqual(['degraded', 'recovered']);
      expect(refresher.status().watching).toBe(true);
    },
  );

  test('a watcher that ends without being closed is created again, and missed changes are found', async () => {
    const { refresher, clock, watchers, mints, events } = refresherScene();
    await refresher.start();
    await clock.advance(MINUTE);
    watchers.refusals.push(boom);
    watchers.end();
    watchers.show('projected-1');
    await clock.advance(MINUTE);
    expect(watchers.made).toBe(3);
    expect(events('degraded', 'recovered').map(({ event }) => event)).toEqual(['degraded', 'recovered']);
    expect(mints()).toEqual([0, 70]);
  });

  test('its `degraded` and `unreadable` are emitted once, and a change ends `unreadable`', async () => {
    const { refresher, clock, watchers, events } = refresherScene();
    await refresher.start();
    const error = new BackendError('ERR_BACKEND_DOWN', 'fs', 'gone');
    watchers.tell('degraded', { error, pollIntervalMs: 1_000 });
    watchers.tell('degraded', { error, pollIntervalMs: 1_000 });
    await clock.advance(SECOND);
    watchers.tell('recovered', { backend: 'fs', degradedMs: 7 });
    for (const end of [() => watchers.show('projected-1'), () => watchers.tell('readable', {})]) {
      watchers.tell('unreadable', { error: boom });
      watchers.tell('unreadable', { error: boom });
      await clock.advance(SECOND);
      end();
    }
    const unreadable = {
      event: 'unreadable',
      detail: { error: { name: 'TokenError', code: 'ERR_TOKEN_FILE', cause: boom } },
    };
    const readable = { event: 'readable', detail: { unreadableMs: SECOND } };
    expect(events('degraded', 'recovered', 'unreadable', 'readable')).toMatchObject([
      { event: 'degraded', detail: { error, pollIntervalMs: 1_000 } },
      { event: 'recovered', detail: { backend: 'fs', degradedMs: SECOND } },
      unreadable,
      readable,
      unreadable,
      readable,
    ]);
  });

  test('a factory that throws is handled like a watcher that cannot start', async () => {
    const { refresher, events } = refresherScene({
      watcherFactory: () => {
        throw new TypeError('broken');
      },
    });
    await refresher.start();
    expect(events('degraded')).toHaveLength(1);
    expect(refresher.status().state).toBe('waiting');
  });
});

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
    [
      string,
      Partial<Parameters<typeof refresherScene>[0]>,
      (scene: ReturnType<typeof refresherScene>) => void,
    ]
  >([
    ['before start()', {}, () => {}],
    ['while it waits', {}, () => {}],
    ['during a mint', {}, ({ client }) => client.script({ delayMs: Infinity })],
    ['between two attempts', {}, ({ client }) => client.script({ error: boom })],
    ['while the watcher starts', {}, ({ watchers }) => watchers.refusals.push(undefined)],
    ['between two starts of the watcher', {}, ({ watchers }) => watchers.refusals.push(boom)],
    ['between two deliveries', { sinks: [() => Promise.reject(boom)] }, () => {}],
  ])('close() %s leaves no timer and no listener, and no event follows', async (when, options, arrange) => {
    const controller = new AbortController();
    const scene = refresherScene({ ...options, signal: controller.signal });
    const { refresher, clock, watchers, log } = scene;
    arrange(scene);
    const started = when === 'before start()' ? undefined : refresher.start();
    started?.catch(() => {});
    await clock.advance(0);
    await refresher.close();
    const told = log.length;
    expect(clock.pending).toBe(0);
    expect(watchers.open.size).toBe(0);
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

  test('it may be called by a listener, or triggered by the signal', async () => {
    const own = refresherScene();
    own.refresher.on('token', () => void own.refresher.close());
    await expect(own.refresher.start()).rejects.toThrow(ClosedError);
    await own.refresher.close();
    expect(own.clock.pending).toBe(0);

    const controller = new AbortController();
    const told = refresherScene({ signal: controller.signal });
    await told.refresher.start();
    controller.abort();
    expect(told.refresher.status().state).toBe('closed');
    expect(refresherScene({ signal: AbortSignal.abort() }).refresher.status().state).toBe('closed');
  });
});

test('no error, event, status or inspection shows a token, even if the client puts one into its error', async () => {
  const leaked = mintTestToken({ sub: 'leaked' });
  const { refresher, clock, client, log } = refresherScene({
    sinks: [(token) => Promise.reject(new Error(`cannot write ${token.value}`))],
  });
  const rejections: unknown[] = [];
  client.script(
    { error: new Error(`401 for Bearer ${leaked}`) },
    {
      error: Object.assign(new Error('401'), { request: { headers: { authorization: `Bearer ${leaked}` } } }),
    },
    { answer: { token: `${leaked}!`, expirationTimestamp: 1e13 } },
    { error: leaked },
  );
  await refresher.start();
  rejections.push(await refresher.get().catch((error: unknown) => error));
  await clock.advance(5 * MINUTE);
  const token = await refresher.get();
  const secrets = [leaked, token.value].flatMap((value) =>
    value.split('.').filter((part) => part.length > 30),
  );
  const everything = [...log, ...rejections, refresher.status(), token];
  const deep = { depth: Infinity, showHidden: true };
  const shown = everything.map((thing) => inspect(thing, deep) + String(thing) + JSON.stringify(thing));
  shown.push(inspect(refresher, deep));
  expect(log.map(({ event }) => event)).toEqual(expect.arrayContaining(['retry', 'undelivered', 'token']));
  for (const text of shown) for (const secret of secrets) expect(text).not.toContain(secret);
});
