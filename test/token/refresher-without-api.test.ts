/** A refresher in a cluster without the TokenRequest API. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { TokenRefresher } from 'resilient-watcher';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { MINUTE, refresherScene, SECOND } from '../support/refresher-scene.js';
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

  test('the file is read a few times an hour, and the next token is found when it is projected', async () => {
    const now = Date.UTC(2024, 1, 6);
    const tokenAt = (at: number): string => {
      const iat = at / 1000;
      return mintTestToken({ iat, exp: iat + 31_536_000, 'kubernetes.io': { warnafter: iat + 3607 } });
    };
    const { refresher, clock, client, projected, events } = refresherScene({}, now);
    projected.show(tokenAt(now));
    client.otherwise = { error: FakeTokenClient.unsupported() };
    await refresher.start();
    await idleAdvance(clock, refresher, 48 * MINUTE);
    expect(client.requests.length).toBeLessThan(20);
    projected.show(tokenAt(clock.now()));
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
