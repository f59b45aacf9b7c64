/** What `diagnose` says when the clock of the machine is wrong. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { diagnose } from '@resilient-watcher/cli/doctor';
import { FakeClock, mintTestToken } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const HOUR_MS = 3_600_000;

/** What it finds at a file that was written just now, by a clock that is ahead of the one that wrote it. */
async function findingsWhen(aheadMs: number, contents: string): Promise<readonly string[]> {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, contents);
  const clock = new FakeClock(Date.now() + aheadMs);
  return (await diagnose(path, { clock })).findings.map(({ id }) => id);
}

const token = (): string => {
  const iat = Math.floor(Date.now() / 1_000);
  return mintTestToken({ iat, nbf: iat, exp: iat + 7_200 });
};

test.each([
  ['a clock that is right', 0, 'x', []],
  ['rounding', -30_000, 'x', []],
  ['a clock that is an hour behind', -HOUR_MS, 'x', ['CLOCK_SKEW']],
  ['a clock that is an hour behind, and a token', -HOUR_MS, token(), ['TOKEN_FUTURE', 'CLOCK_SKEW']],
  ['a clock that is an hour ahead, and a token', HOUR_MS, token(), []],
  ['a clock that is three hours ahead, and a token', 3 * HOUR_MS, token(), ['TOKEN_STALE']],
])('%s', async (_, aheadMs, contents, ids) => {
  expect(await findingsWhen(aheadMs, contents)).toEqual(ids);
});

test('a plain directory was changed when a file in it was written', async () => {
  const directory = join(temporaryDirectory(), 'tls');
  mkdirSync(directory);
  writeFileSync(join(directory, 'tls.crt'), 'one');
  const before = await diagnose(directory);
  // The change of a file shows in no timestamp of its directory.
  await expect
    .poll(async () => {
      utimesSync(join(directory, 'tls.crt'), 1, 1);
      return (await diagnose(directory)).revisionAt;
    })
    .toBeGreaterThan(before.revisionAt ?? Infinity);
});
