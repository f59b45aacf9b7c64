/** A refresher in a cluster without the TokenRequest API. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { refresherScene } from '../support/refresher-scene.js';
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
