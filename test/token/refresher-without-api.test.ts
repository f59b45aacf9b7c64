/** A refresher in a cluster without the TokenRequest API, and with one that extends its tokens to a year. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { healthOf, type TokenAnswer } from 'resilient-watcher';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { DAY, HOUR, MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

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

  test('without a file the attempt fails with that error', async () => {
    const { refresher, client, events } = refresherScene({ tokenFile: false });
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    expect(events('retry')).toMatchObject([{ detail: { error: { code: 'ERR_TOKEN_UNSUPPORTED' } } }]);
  });
});

describe('a token that is to be replaced after an hour, and is accepted for a year', () => {
  const YEAR = 365 * DAY;
  const NOW = Date.UTC(2024, 1, 6);

  /** As with `--service-account-extend-token-expiration`. */
  function extended(issuedAt: number): TokenAnswer {
    const iat = issuedAt / SECOND;
    const token = mintTestToken({
      iat,
      nbf: iat,
      exp: iat + YEAR / SECOND,
      'kubernetes.io': { warnafter: iat + 3607 },
    });
    return { token, expirationTimestamp: new Date(issuedAt + 3607 * SECOND).toISOString() };
  }

  test('minted: it is returned and ready until its exp while requests fail, with one warning', async () => {
    const { refresher, clock, client, events } = refresherScene({}, NOW);
    client.otherwise = { answer: extended(NOW) };
    await refresher.start();
    const token = await refresher.get();
    // It is replaced by its hour.
    expect(refresher.status()).toMatchObject({ nextRefreshAt: NOW + (3607 * SECOND) / 4, expired: false });
    client.otherwise = { error: new Error('ECONNREFUSED') };
    await clock.advance(3607 * SECOND - 1);
    expect(events('warning')).toEqual([]);
    await clock.advance(1);
    expect(events('warning').map(({ detail }) => detail)).toEqual([
      {
        code: 'stale',
        message:
          'The token should have been replaced at 2024-02-06T01:00:07.000Z, and is accepted until 2025-02-05T00:00:00.000Z: Cannot get a token from the API server: ECONNREFUSED',
      },
    ]);
    await clock.advance(HOUR);
    expect(await refresher.get()).toBe(token);
    expect(healthOf(refresher)).toMatchObject({ live: true, ready: true });
    expect(refresher.status()).toMatchObject({ healthy: false, expired: false });
    expect(events('expired')).toEqual([]);
    expect(Math.max(...clock.delays)).toBeLessThanOrEqual(MINUTE);

    clock.jump(NOW + YEAR - MINUTE - clock.now());
    await clock.advance(MINUTE - 1);
    expect(await refresher.get()).toBe(token);
    expect(healthOf(refresher).ready).toBe(true);
    await clock.advance(1);
    await expect(refresher.get()).rejects.toMatchObject({ code: 'ERR_TOKEN_EXPIRED' });
    expect(healthOf(refresher).checks).toMatchObject([
      { ready: false, reason: 'the token has expired: ERR_TOKEN_REQUEST' },
    ]);
    expect(events('expired')).toMatchObject([{ at: NOW + YEAR }]);
    expect(events('warning')).toHaveLength(1);

    client.otherwise = {};
    await clock.advance(MINUTE);
    expect(await refresher.get()).not.toBe(token);
    expect(healthOf(refresher).ready).toBe(true);
  });

  test('projected: one that kubelet replaces late is used, delivered and read again within a minute', async () => {
    const file = join(temporaryDirectory(), 'token');
    writeFileSync(file, extended(NOW - 2 * HOUR).token);
    const delivered: string[] = [];
    const scene = refresherScene(
      { tokenFile: file, sinks: [({ value }) => void delivered.push(value)] },
      NOW,
    );
    const { refresher, clock, client, events } = scene;
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    const late = await refresher.get();
    expect(late.value).toBe(extended(NOW - 2 * HOUR).token);
    expect(delivered).toEqual([late.value]);
    expect(healthOf(refresher)).toMatchObject({ live: true, ready: true });
    const { nextRefreshAt } = refresher.status();
    expect(nextRefreshAt).toBeGreaterThan(NOW);
    expect(nextRefreshAt).toBeLessThanOrEqual(NOW + MINUTE);
    await clock.advance(10 * MINUTE);
    expect(events('warning')).toMatchObject([{ detail: { code: 'stale' } }]);
    expect(client.requests.length).toBeLessThan(25);
    expect(events('retry', 'expired', 'unhealthy')).toEqual([]);

    writeFileSync(file, extended(NOW).token);
    await clock.advance(MINUTE);
    expect((await refresher.get()).value).toBe(extended(NOW).token);
    expect(refresher.status().nextRefreshAt).toBeGreaterThan(clock.now() + MINUTE);
    await refresher.close();
    expect(clock.pending).toBe(0);
  });
});
