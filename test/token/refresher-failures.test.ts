/** A refresher whose client, file or watcher fails. */
import { inspect } from 'node:util';

import { TokenError } from 'resilient-watcher';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { fsWith } from '../support/intercepted-fs.js';
import { DAY, HOUR, MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';

const boom = new Error('ECONNREFUSED 10.0.0.1:443');

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
    [
      'past its own exp, whatever it says itself',
      (client) => ({ ...client.mint(-1), expirationTimestamp: 1e13 }),
      'ERR_TOKEN_EXPIRED',
    ],
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
    const { refresher, clock, client, projected, mints } = refresherScene();
    client.script(
      { error: FakeTokenClient.tooManyRequests(90 * SECOND) },
      { error: Object.assign(new Error('503'), { retryAfterMs: DAY }) },
    );
    await refresher.start();
    await clock.advance(30 * SECOND);
    projected.show('projected-1');
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

  test('a client whose prepare() never returns fails the attempt in time, and is asked again', async () => {
    const signals: AbortSignal[] = [];
    const { refresher, clock, client, events } = refresherScene({
      client: {
        prepare: ({ signal }) => {
          signals.push(signal);
          return signals.length === 1 ? new Promise(() => {}) : Promise.resolve();
        },
        requestToken: (request, options) => client.requestToken(request, options),
      },
    });
    void refresher.start();
    await clock.advance(MINUTE);
    expect(events('retry')).toMatchObject([{ detail: { error: { code: 'ERR_TOKEN_TIMEOUT' } } }]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(client.requests).toEqual([]);
    await clock.advance(10 * SECOND);
    expect(events('token')).toHaveLength(1);
  });

  test('once the token has expired, get() rejects with the last failure as its cause, and `expired` is emitted once for each token', async () => {
    const { refresher, clock, client, events } = refresherScene({ expirationSeconds: HOUR / SECOND });
    await refresher.start();
    const { expiresAt } = await refresher.get();
    client.otherwise = { error: boom };
    await clock.advance(HOUR - 1);
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
    const next = await refresher.get();
    expect(next.expiresAt).toBeGreaterThan(clock.now());
    expect(events('healthy')).toHaveLength(1);
    client.otherwise = { error: boom };
    await clock.advance(2 * HOUR);
    expect(events('expired').slice(1)).toMatchObject([{ detail: { current: next } }]);
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

test('a client that cannot work is refused by start(), reported once as an `error`, and not called again', async () => {
  const { refresher, clock, client, events } = refresherScene();
  const error = new TokenError('ERR_TOKEN_CLIENT', 'npm install it');
  client.otherwise = { error };
  const started = refresher.start();
  expect(refresher.start()).toBe(started);
  await expect(started).rejects.toMatchObject({ code: 'ERR_TOKEN_CLIENT', message: 'npm install it' });
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

describe('a token file that cannot be watched or read never affects the token', () => {
  test('without native watching it is polled and reported as degraded, and the timer goes on', async () => {
    const { refresher, clock, projected, mints, events } = refresherScene();
    projected.backend.refuse(boom);
    await refresher.start();
    expect(events('degraded', 'error')).toMatchObject([
      { detail: { error: { code: 'ERR_BACKEND_DOWN' }, pollIntervalMs: 1_000 } },
    ]);
    expect(refresher.status()).toMatchObject({ watching: false, healthy: true });
    await clock.advance(MINUTE);
    expect(events('recovered')).toMatchObject([{ detail: { backend: 'scripted' } }]);
    expect(refresher.status().watching).toBe(true);
    await clock.advance(12 * HOUR);
    expect(mints().length).toBeGreaterThan(1);
  });

  test('one that gives no answer is reported as unreadable, and what it holds is used once it does', async () => {
    const answer = new Outcome<undefined>();
    const fs = fsWith({ lstat: ({ make }) => answer.promise.then(() => make()) }, 'remote');
    const { refresher, clock, client, mints, events } = refresherScene({ fs });
    const started = refresher.start();
    await clock.advance(10 * SECOND);
    await started;
    expect(mints()).toEqual([10]);
    expect(events('unreadable', 'error')).toMatchObject([{ detail: { error: { code: 'ERR_TOKEN_FILE' } } }]);
    expect(refresher.status()).toMatchObject({ watching: false, healthy: true });
    await clock.advance(MINUTE);
    answer.resolve(undefined);
    await expect.poll(() => events('readable')).toMatchObject([{ detail: { unreadableMs: 70_000 } }]);
    await clock.advance(10 * SECOND);
    expect(client.requests.map(({ credential }) => credential?.value)).toEqual([undefined, 'projected-0']);
  });

  test('one that answers late that it may not be read stays unreadable', async () => {
    const answer = new Outcome<undefined>();
    const fs = fsWith({ lstat: ({ make }) => answer.promise.then(() => make()) }, 'remote');
    const { refresher, clock, events } = refresherScene({ fs });
    const started = refresher.start();
    await clock.advance(10 * SECOND);
    await started;
    answer.reject(Object.assign(new Error('denied'), { code: 'EACCES' }));
    const causes = (): unknown[] =>
      events('unreadable').map(({ detail }) => (detail as { error: { code: string } }).error.code);
    await expect
      .poll(() => clock.advance(SECOND).then(causes))
      .toEqual(['ERR_TOKEN_FILE', 'ERR_TARGET_ACCESS']);
    expect(events('readable')).toEqual([]);
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
