import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';

import { ClosedError, TokenFile, type TokenFileOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { outcomeOf } from '../support/outcome-of.js';
import { faultyFileSystem } from '../support/faulty-file-system.js';
import { HOUR, MINUTE, SECOND } from '../support/refresher-scene.js';
import { ScriptedWatchers } from '../support/scripted-watcher.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const NOW = Date.UTC(2024, 1, 6);
let serial = 0;

function mint(from = NOW, lifeSeconds = 3600, claims: Record<string, unknown> = {}): string {
  const iat = from / 1000;
  return mintTestToken({ iat, nbf: iat, exp: iat + lifeSeconds, jti: String((serial += 1)), ...claims });
}

/** A token file whose watcher sees nothing but what it is told, on fake time; reads are counted. */
function watchedToken(text = mint(), options: TokenFileOptions = {}) {
  const path = join(temporaryDirectory(), 'token');
  const write = (next: string): void => {
    writeFileSync(`${path}.new`, next);
    renameSync(`${path}.new`, path);
  };
  write(text);
  const clock = new FakeClock(NOW);
  const watchers = new ScriptedWatchers();
  let reads = 0;
  const fs = faultyFileSystem((name, [opened]) => {
    if (name === 'open' && opened === path) reads += 1;
  });
  const file = new TokenFile(path, { clock, fs, watcherFactory: watchers.factory, ...options });
  onTestFinished(() => file.close());
  const told: string[] = [];
  for (const event of [
    'token',
    'unreadable',
    'readable',
    'stale',
    'skew',
    'degraded',
    'recovered',
  ] as const) {
    file.on(event, () => told.push(event));
  }
  return { path, write, clock, watchers, file, told, reads: () => reads };
}

test('get() returns the trimmed token, and concurrent calls read the file once', async () => {
  const token = mint();
  const { file, reads } = watchedToken(`${token}\n`);
  const answers = await Promise.all(Array.from({ length: 100 }, () => file.get()));
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]?.value).toBe(token);
  expect(reads()).toBe(1);
});

test('the file is read again after a minute without a hint, whichever way the clock jumps', async () => {
  const { file, clock, write, reads } = watchedToken();
  await file.get();
  for (const jump of [0, -5 * HOUR, 5 * HOUR]) {
    const next = mint(NOW, 86_400);
    write(next);
    clock.jump(jump);
    const before = reads();
    await clock.advance(59 * SECOND);
    expect((await file.get()).value).not.toBe(next);
    expect(reads()).toBe(before);
    await clock.advance(SECOND);
    expect((await file.get()).value).toBe(next);
  }
});

test('content reported by the watcher becomes the token immediately, without reading the file', async () => {
  const { file, watchers, told, reads } = watchedToken();
  await file.get();
  await file.start();
  const next = mint();
  watchers.show(`${next}\n`);
  expect((await file.get()).value).toBe(next);
  expect(reads()).toBe(1);
  expect(told).toEqual(['token', 'token']);
});

test('a token that a listener of `readable` causes to be replaced is not reported after its successor', async () => {
  const { file, watchers } = watchedToken();
  await file.start();
  const reported: unknown[] = [];
  file.on('token', ({ token }) => reported.push(token));
  watchers.show('garbage');
  file.once('readable', () => watchers.show(mint()));
  watchers.show(mint());
  expect(reported).toEqual([file.current]);
});

test('a read that began before the watcher reported a newer token does not restore the old one', async () => {
  const { file, watchers } = watchedToken();
  await file.start();
  const reading = file.reportUnauthorized();
  const next = mint();
  watchers.show(next);
  expect((await reading).value).toBe(next);
  expect((await file.get()).value).toBe(next);
});

test.each<[string, (path: string) => void]>([
  ['missing', (path) => rmSync(path)],
  ['empty', (path) => writeFileSync(path, '\n')],
  ['cut off', (path) => writeFileSync(path, mint().slice(0, 50))],
  ['too large to be a token', (path) => writeFileSync(path, 'x'.repeat(65_537))],
  [
    'a directory',
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
])('while the file is %s the last good token is kept until its end, and told once', async (_, spoil) => {
  const { path, file, clock, told } = watchedToken();
  const good = await file.get();
  spoil(path);
  for (let minute = 0; minute < 59; minute += 1) {
    await clock.advance(MINUTE);
    expect(await outcomeOf(file.get(), clock)).toBe(good);
  }
  expect(file.status()).toMatchObject({
    unreadableSince: expect.any(Number) as number,
    lastError: { name: 'TokenError', message: expect.stringContaining(path) as string },
  });
  await clock.advance(MINUTE);
  expect(file.current).toBe(good);
  await expect(outcomeOf(file.get(), clock)).rejects.toMatchObject({
    code: 'ERR_TOKEN_EXPIRED',
    cause: { name: 'TokenError' },
  });
  expect(told).toEqual(['token', 'unreadable']);
  rmSync(path, { recursive: true, force: true });
  const next = mint(clock.now());
  writeFileSync(path, next);
  await clock.advance(SECOND);
  expect((await file.get()).value).toBe(next);
  expect(file.status().unreadableSince).toBeNull();
  expect(told).toEqual(['token', 'unreadable', 'readable', 'token']);
});

test('a file without a token is not read at each get()', async () => {
  const { file, path, clock, reads } = watchedToken('');
  for (let n = 0; n < 10; n += 1) {
    await expect(file.get()).rejects.toMatchObject({ code: 'ERR_TOKEN_UNAVAILABLE' });
  }
  expect(reads()).toBe(1);
  await clock.advance(SECOND);
  writeFileSync(path, mint());
  expect(await file.get()).toBeDefined();
});

test('a token that should have been replaced is used while the server accepts it, and reported as `stale` once', async () => {
  // A default pod token: rotated after an hour, refused after a year.
  const { file, clock, told } = watchedToken(
    mint(NOW, 31_536_000, { 'kubernetes.io': { warnafter: NOW / 1000 + 3607 } }),
  );
  await file.get();
  await clock.advance(3_606 * SECOND);
  await file.get();
  expect(told).toEqual(['token']);
  await clock.advance(SECOND);
  await file.get();
  await file.get();
  expect(told).toEqual(['token', 'stale']);
  expect(file.status().stale).toBe(true);
});

test('a token dated ahead is used, and reported as `skew` once', async () => {
  const { file, told } = watchedToken(mint(NOW + 54 * 24 * HOUR));
  await file.get();
  await file.get();
  expect(told).toEqual(['token', 'skew']);
});

test('reportUnauthorized() reads the file again, unless that token is no longer the current one', async () => {
  const { file, write, reads } = watchedToken();
  const old = await file.get();
  const next = mint();
  write(next);
  const fresh = await file.reportUnauthorized(old);
  expect(fresh.value).toBe(next);
  expect(await file.reportUnauthorized(old)).toBe(fresh);
  expect(reads()).toBe(2);
  expect(await file.reportUnauthorized()).toBe(fresh);
  expect(reads()).toBe(3);
});

test('an opaque token file is anything that fits a header', async () => {
  const { file } = watchedToken('s3cret\n', { format: 'opaque' });
  expect((await file.get()).value).toBe('s3cret');
  expect(inspect(file, { depth: 9, showHidden: true }) + JSON.stringify(file.status())).not.toContain(
    's3cret',
  );
});

test('a swap that falls between two steps of one path resolution is not an error', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'token'), mint());
  let misses = 2;
  const fs = faultyFileSystem((name) => {
    if (name === 'open' && (misses -= 1) >= 0) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
  });
  const clock = new FakeClock(NOW);
  const watcherFactory = new ScriptedWatchers().factory;
  await using file = new TokenFile(join(directory, 'token'), { fs, clock, watcherFactory });
  expect(await file.get()).toBeDefined();
});

test('close() leaves no timer and no listener, and may be called twice', async () => {
  const controller = new AbortController();
  const { file, clock, watchers, told } = watchedToken(mint(), { signal: controller.signal });
  watchers.refusals.push(new Error('EMFILE'));
  await file.get();
  await file.start();
  expect(told).toContain('degraded');
  await file.close();
  expect(clock.pending).toBe(0);
  expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  expect(file.close()).toBe(file.close());
  await expect(file.get()).rejects.toThrow(ClosedError);
  await expect(file.start()).rejects.toThrow(ClosedError);
  expect(file.status().state).toBe('closed');
});

test.each<[unknown, unknown, typeof TypeError | typeof RangeError, string]>([
  ['', {}, TypeError, 'path must be a non-empty string'],
  [
    '/x',
    { maxAgeMs: 60_001 },
    RangeError,
    'option "maxAgeMs" must be a finite number between 0 and 60000 (ms)',
  ],
  ['/x', { format: 'jws' }, TypeError, 'option "format" must be one of "jwt", "opaque"'],
])('%j with %j is refused', (path, options, kind, message) => {
  const construct = (): unknown => new TokenFile(path as string, options as TokenFileOptions);
  expect(construct).toThrow(kind);
  expect(construct).toThrow(`TokenFile: ${message}`);
});

test('with its own watcher it follows a real volume', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'serviceaccount'));
  const first = mintTestToken({ jti: '1' });
  volume.publish({ token: first });
  await using file = new TokenFile(volume.path('token'), { maxAgeMs: 60_000 });
  await file.start();
  expect((await file.get()).value).toBe(first);
  for (let n = 2; n < 20; n += 1) {
    const next = mintTestToken({ jti: String(n) });
    const seen = new Promise<string>((resolve) => file.once('token', ({ token }) => resolve(token.value)));
    volume.publish({ token: next });
    expect(await seen).toBe(next);
    expect((await file.get()).value).toBe(next);
  }
});

test('its path may be a URL', async () => {
  const path = join(temporaryDirectory(), 'token');
  const token = mint();
  writeFileSync(path, token);
  const clock = new FakeClock(NOW);
  await using file = new TokenFile(pathToFileURL(path), {
    clock,
    watcherFactory: new ScriptedWatchers().factory,
  });
  expect(file.path).toBe(path);
  expect((await file.get()).value).toBe(token);
});

test('its status is plain data, null for what is not known', async () => {
  const { file, path, clock } = watchedToken();
  const unknown = {
    issuedAt: null,
    expiresAt: null,
    lastReadAt: null,
    unreadableSince: null,
    lastError: null,
  };
  expect(file.status()).toMatchObject({ name: 'token', path, state: 'idle', ...unknown });
  expect(file.current).toBeUndefined();
  const token = await file.get();
  expect(file.current).toBe(token);
  await file.start();
  expect(JSON.parse(JSON.stringify(file))).toMatchObject({
    state: 'running',
    lastReadAt: clock.now(),
    expiresAt: token.expiresAt,
  });
});

test('what the watcher cannot read is reported as unreadable, with how long it lasted', async () => {
  const { file, clock, watchers, told } = watchedToken();
  await file.start();
  const ended: unknown[] = [];
  file.on('readable', (event) => ended.push(event));
  watchers.tell('unreadable', { error: new Error('EACCES') });
  await clock.advance(SECOND);
  watchers.tell('readable', { unreadableMs: SECOND });
  await expect.poll(() => told).toEqual(['token', 'unreadable', 'readable']);
  expect(ended).toEqual([{ unreadableMs: SECOND }]);
  expect(file.status().lastError).toMatchObject({
    code: 'ERR_TOKEN_FILE',
    message: expect.stringContaining('EACCES') as string,
  });
});
