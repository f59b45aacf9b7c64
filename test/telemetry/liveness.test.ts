/** What `/livez` and `/readyz` say of real components, in a time that passes only when the test says so. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import {
  healthHandler,
  healthOf,
  ResilientWatcher,
  TokenFile,
  type ComponentHandle,
} from 'resilient-watcher';
import { FakeClock, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Does not answer before the test has ended; of one mount there is one call at a time, no matter who makes it. */
function noAnswer(): Promise<void> {
  return new Promise((resolve) => onTestFinished(() => resolve()));
}

const INTERVAL_MS = 1_000;
const DAY_MS = 86_400_000;

async function probe(component: ComponentHandle): Promise<(path: string) => Promise<number>> {
  const server = createServer(healthHandler(component));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
}

test('a file system that never answers the first check is reported by /livez after three intervals', async () => {
  const clock = new FakeClock();
  const fs = fsWith({ lstat: noAnswer }, 'remote');
  const path = join(temporaryDirectory(), 'file');
  const watcher = new ResilientWatcher(path, { fs, clock, resyncIntervalMs: INTERVAL_MS });
  onTestFinished(() => watcher.close());
  const statusOf = await probe(watcher);
  expect(await statusOf('/livez')).toBe(200);
  await clock.advance(10 * INTERVAL_MS);
  const started = watcher.start().catch(() => undefined);
  await clock.advance(3 * INTERVAL_MS);
  expect(await statusOf('/livez')).toBe(200);
  await clock.advance(1);
  expect(await statusOf('/livez')).toBe(503);
  expect(healthOf(watcher).checks[0]?.reason).toBe('the first check began 3001 ms ago');
  await watcher.close();
  await started;
});

test('a token has expired by the clock that its component was given', async () => {
  const path = join(temporaryDirectory(), 'token');
  // Of last year, and so is the clock.
  const clock = new FakeClock(Date.now() - 365 * DAY_MS);
  const exp = Math.floor(clock.now() / 1_000) + 3_600;
  writeFileSync(path, mintTestToken({ iat: exp - 3_600, exp }));
  const file = new TokenFile(path, { clock });
  onTestFinished(() => file.close());
  await file.get();
  expect(healthOf(file)).toMatchObject({ live: true, ready: true });
  await clock.advance(3_600_000);
  expect(healthOf(file)).toMatchObject({ live: true, ready: false, checks: [{ reason: 'it has expired' }] });
});
