import { healthOf, TokenFile, type TokenFileOptions } from 'resilient-watcher';
import { FakeClock, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';
import { outcomeOf } from '../support/outcome-of.js';
import { ProjectedToken } from '../support/projected-token.js';
import { HOUR, MINUTE, SECOND } from '../support/refresher-scene.js';

const NOW = Date.UTC(2024, 1, 6);
let serial = 0;

function mint(from = NOW, lifeSeconds = 3600, claims: Record<string, unknown> = {}): string {
  const iat = from / 1000;
  return mintTestToken({ iat, nbf: iat, exp: iat + lifeSeconds, jti: String((serial += 1)), ...claims });
}

/** A token file on fake time, of which nothing is seen but what the test shows. */
function watchedToken(text: string | undefined = mint(), options: TokenFileOptions = {}) {
  const projected = new ProjectedToken(text);
  const clock = new FakeClock(NOW);
  const file = new TokenFile(projected.path, { clock, ...projected.options, ...options });
  onTestFinished(() => file.close());
  const told: string[] = [];
  for (const event of [
    'change',
    'rejected',
    'unreadable',
    'readable',
    'skew',
    'degraded',
    'recovered',
  ] as const) {
    file.on(event, () => told.push(event));
  }
  return { projected, clock, file, told };
}

test('get() returns the trimmed token, the same one to all', async () => {
  const token = mint();
  const { file } = watchedToken(`${token}\n`);
  const answers = await Promise.all(Array.from({ length: 100 }, () => file.get()));
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]?.value).toBe(token);
});

test('without events a new token is found within 5 s, whichever way the clock jumps', async () => {
  const { file, clock, projected } = watchedToken(mint(), { resyncIntervalMs: undefined });
  await file.get();
  for (const jump of [0, -5 * HOUR, 5 * HOUR]) {
    const next = mint(NOW, 86_400);
    projected.replace(next);
    clock.jump(jump);
    await clock.advance(5 * SECOND);
    expect((await file.get()).value).toBe(next);
  }
});

test.each<[string, Record<string, string>]>([
  ['missing', {}],
  ['empty', { token: '\n' }],
  ['cut off', { token: mint().slice(0, 50) }],
  ['too large to be a token', { token: 'x'.repeat(65_537) }],
  ['a directory', { 'token/file': mint() }],
])('while the file is %s the last good token is kept until its end, and told once', async (_, files) => {
  const { projected, file, clock, told } = watchedToken();
  const good = await file.get();
  projected.volume.publish(files);
  projected.backend.hint();
  for (let minute = 0; minute < 59; minute += 1) {
    await clock.advance(MINUTE);
    expect(await file.get()).toBe(good);
  }
  const rejected = { name: 'TokenError', message: expect.stringContaining(file.path) as string };
  expect(file.status()).toMatchObject({ rejected, lastError: rejected });
  await clock.advance(MINUTE);
  expect(file.current).toBe(good);
  await expect(file.get()).rejects.toMatchObject({
    code: 'ERR_TOKEN_EXPIRED',
    cause: { name: 'TokenError' },
  });
  expect(told).toEqual(['change', 'rejected']);
  const next = mint(clock.now());
  projected.show(next);
  await clock.advance(SECOND);
  expect((await file.get()).value).toBe(next);
  expect(file.status().rejected).toBeNull();
  expect(told).toEqual(['change', 'rejected', 'change']);
});

test.each(['jwt', 'opaque'] as const)(
  'a file in UTF-16 is refused with the way to convert it (%s)',
  async (format) => {
    const { file, projected } = watchedToken('', { format });
    projected.volume.publish({ token: Buffer.from(`\ufeff${mint()}\n`, 'utf16le') });
    projected.backend.hint();
    await expect(outcomeOf(file.get(), new FakeClock())).rejects.toMatchObject({
      cause: {
        code: 'ERR_TOKEN_MALFORMED',
        message: expect.stringContaining('is UTF-16; convert it: iconv -f UTF-16 -t UTF-8') as string,
      },
    });
  },
);

test('without a token get() rejects with the reason, and ready() waits for one', async () => {
  const { file, projected } = watchedToken('');
  await expect(outcomeOf(file.get(), new FakeClock())).rejects.toMatchObject({
    code: 'ERR_TOKEN_UNAVAILABLE',
    cause: { code: 'ERR_TOKEN_MALFORMED' },
  });
  const ready = file.ready();
  const token = mint();
  projected.show(token);
  expect((await ready).value).toBe(token);
});

test('a token that expired while the machine slept is read again before it is refused', async () => {
  const { file, clock, projected } = watchedToken();
  await file.get();
  clock.jump(8 * HOUR);
  const next = mint(clock.now());
  projected.replace(next);
  expect((await file.get()).value).toBe(next);
});

test('a token counts as expired by the time that has passed, too, after the clock was set back', async () => {
  const { file, clock } = watchedToken(mint(NOW, 600, { 'kubernetes.io': { warnafter: NOW / 1000 + 300 } }));
  const warnings: string[] = [];
  file.on('warning', ({ code }) => warnings.push(code));
  await file.get();
  clock.jump(-HOUR);
  await clock.advance(5 * MINUTE);
  expect(file.status()).toMatchObject({ stale: true, expired: false });
  expect(warnings).toEqual(['stale']);
  await file.get();
  await clock.advance(5 * MINUTE);
  expect(file.status()).toMatchObject({ stale: true, expired: true });
  expect(healthOf(file)).toMatchObject({ live: true, ready: false });
  await expect(file.get()).rejects.toMatchObject({ code: 'ERR_TOKEN_EXPIRED' });
});

test('a token that is replaced late is used and ready until the server refuses it, with one warning', async () => {
  // A default pod token: rotated after an hour, refused after a year.
  const lifeSeconds = 31_536_000;
  const { file, clock, told } = watchedToken(
    mint(NOW, lifeSeconds, { 'kubernetes.io': { warnafter: NOW / 1000 + 3607 } }),
    { resyncIntervalMs: 0 },
  );
  const warnings: string[] = [];
  file.on('warning', ({ code, message }) => warnings.push(`${code} ${message}`));
  const token = await file.get();
  await clock.advance(3_606 * SECOND);
  expect(file.status()).toMatchObject({ stale: false, expired: false });
  expect(warnings).toEqual([]);
  // Nobody has to ask for the token.
  await clock.advance(SECOND);
  expect(warnings).toEqual([
    `stale "${file.path}": the token should have been replaced at 2024-02-06T01:00:07.000Z, and is accepted until 2025-02-05T00:00:00.000Z; see why kubelet does not renew it`,
  ]);
  expect(await file.get()).toBe(token);
  expect(file.status()).toMatchObject({ stale: true, expired: false });
  expect(healthOf(file)).toMatchObject({ live: true, ready: true });
  // An NTP step does not repeat the warning.
  clock.jump(-2 * HOUR);
  clock.jump(NOW + lifeSeconds * SECOND - SECOND - clock.now());
  await clock.advance(0);
  expect(healthOf(file)).toMatchObject({ live: true, ready: true });
  await clock.advance(SECOND);
  expect(healthOf(file).checks).toMatchObject([{ live: true, ready: false, reason: 'it has expired' }]);
  await expect(file.get()).rejects.toMatchObject({ code: 'ERR_TOKEN_EXPIRED' });
  expect(warnings).toHaveLength(1);
  expect(told).toEqual(['change']);
  await file.close();
  expect(clock.pending).toBe(0);
});

test('a token dated ahead is used, and reported as `skew` once', async () => {
  const { file, told } = watchedToken(mint(NOW + 54 * 24 * HOUR));
  await file.get();
  await file.get();
  expect(told).toEqual(['change', 'skew']);
});

test('reportUnauthorized() reads the file again, unless that token is no longer the current one', async () => {
  const { file, projected } = watchedToken();
  const old = await file.get();
  const [next, last] = [mint(), mint()];
  projected.replace(next);
  const fresh = await file.reportUnauthorized(old);
  expect(fresh.value).toBe(next);
  projected.replace(last);
  expect(await file.reportUnauthorized(old)).toBe(fresh);
  expect((await file.reportUnauthorized()).value).toBe(last);
});

test.each<[unknown, unknown, typeof TypeError | typeof RangeError, string]>([
  ['', {}, TypeError, 'path must be a non-empty string'],
  ['/x', { resyncInterval: 1 }, TypeError, 'unknown option "resyncInterval"'],
  ['/x', { format: 'jws' }, TypeError, 'option "format" must be one of "jwt", "opaque"'],
])('%j with %j is refused', (path, options, kind, message) => {
  const construct = (): unknown => new TokenFile(path as string, options as TokenFileOptions);
  expect(construct).toThrow(kind);
  expect(construct).toThrow(`TokenFile: ${message}`);
});

test('its status is plain data, null for what is not known', async () => {
  const { file, clock } = watchedToken();
  const unknown = { issuedAt: null, expiresAt: null, lastChangeAt: null, rejected: null, lastError: null };
  expect(file.status()).toMatchObject({ name: 'token', path: file.path, state: 'idle', ...unknown });
  expect(file.current).toBeUndefined();
  const token = await file.get();
  expect(file.current).toBe(token);
  await file.start();
  expect(JSON.parse(JSON.stringify(file))).toMatchObject({
    state: 'running',
    lastChangeAt: clock.now(),
    expiresAt: token.expiresAt,
  });
});
