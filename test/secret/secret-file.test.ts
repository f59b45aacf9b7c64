/** `SecretFile` and `credentials()`: what they hand out, refuse, and never print. */

import { getEventListeners } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { credentials, SecretFile, type SecretError, type SecretFileOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { fsWith } from '../support/intercepted-fs.js';
import { outcomeOf } from '../support/outcome-of.js';
import { realIo } from '../support/real-io.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Changes are seen when the test checks. */
const SCRIPTED = { resyncIntervalMs: 0 };

function openSecret(options?: SecretFileOptions): {
  volume: KubeletVolume;
  secret: SecretFile;
  events: readonly string[];
} {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'db'));
  const secret = new SecretFile(volume.path('password'), {
    backend: new ScriptedBackend(),
    ...SCRIPTED,
    ...options,
  });
  onTestFinished(() => secret.close());
  const events: string[] = [];
  secret.on('change', ({ current }) => events.push(current.value));
  secret.on('rejected', ({ error }) => events.push((error as SecretError).code));
  return { volume, secret, events };
}

test.each([
  ['a trailing newline is not part of a password', 'pass word\n', {}, 'pass word'],
  ['spaces at both ends are part of it', ' pass word \t\r\n\n', {}, ' pass word \t'],
  ['a byte order mark is not', Buffer.from('\uFEFFpassword'), {}, 'password'],
  ['unless it is to be kept', 'password\n', { trim: false }, 'password\n'],
  [
    'latin1, without its trailing newline, too',
    Buffer.from([0x70, 0xe4, 0x0a]),
    { encoding: 'latin1' },
    'pä',
  ],
  [
    'bytes as base64, of which none is white space',
    Buffer.from([0x0a, 0xff, 0x20]),
    { encoding: 'base64' },
    'Cv8g',
  ],
  ['a NUL where bytes are wanted', 'a\0', { encoding: 'latin1' }, 'a\0'],
  ['bytes as hex', Buffer.from([0, 255]), { encoding: 'hex' }, '00ff'],
  ['nothing is expected of its form', 'eyJub3QgYSBqd3Qi.x', {}, 'eyJub3QgYSBqd3Qi.x'],
] as const)('%s', async (_name, content, options, value) => {
  const { volume, secret } = openSecret(options);
  volume.publish({ password: content });
  expect((await secret.get()).value).toBe(value);
});

test('the first get() in the gap of a swap waits for the end of it, and until the file is complete', async () => {
  const directory = temporaryDirectory();
  const clock = new FakeClock();
  symlinkSync('current', join(directory, 'password'));
  await using secret = new SecretFile(join(directory, 'password'), { clock });
  const got = secret.get();
  await realIo();
  await clock.advance(400);
  writeFileSync(join(directory, 'current'), 'complete');
  expect((await outcomeOf(got, clock)).value).toBe('complete');
});

describe('contents that cannot be a secret are rejected, and the last good one stays:', () => {
  test.each([
    ['an empty file', '', 'ERR_SECRET_INVALID', 'is empty'],
    ['white space', ' \n\t\n', 'ERR_SECRET_INVALID', 'only white space'],
    ['10 MB', Buffer.alloc(10 * 2 ** 20, 'x'), 'ERR_SECRET_INVALID', '10485760 bytes'],
    [
      'UTF-16 with a mark',
      Buffer.from('\uFEFFsecret', 'utf16le'),
      'ERR_SECRET_INVALID',
      'is UTF-16; convert it',
    ],
    ['UTF-16 without', Buffer.from('secret', 'utf16le'), 'ERR_SECRET_INVALID', 'iconv -f UTF-16LE -t UTF-8'],
    ['the other order', Buffer.from('secret', 'utf16le').swap16(), 'ERR_SECRET_INVALID', '-f UTF-16BE'],
    ['a NUL', 'secret\0', 'ERR_SECRET_INVALID', 'contains a NUL byte; set the option "encoding"'],
    ['bytes that are no text', Buffer.from([0xff, 0xff]), 'ERR_SECRET_INVALID', 'set the option "encoding"'],
  ])('%s', async (_name, content, code, says) => {
    const { volume, secret, events } = openSecret();
    volume.publish({ password: 'good' });
    await secret.start();
    volume.publish({ password: content });
    await secret.check();
    expect(events).toEqual(['good', code]);
    expect(secret.current?.value).toBe('good');
    expect(secret.status()).toMatchObject({ available: true, rejected: { code }, rejections: 1 });
    expect(secret.status().rejected?.message).toContain(says);
    volume.publish({ password: 'good' });
    await secret.check();
    expect(secret.status().rejected).toBeNull();
  });

  test('without a file, get() rejects with the reason and ready() waits', async () => {
    const { volume, secret } = openSecret();
    await expect(secret.get()).rejects.toMatchObject({
      code: 'ERR_SECRET_UNAVAILABLE',
      message: expect.stringMatching(/There is no secret yet in .*password" does not exist/) as string,
      cause: { code: 'ERR_SECRET_MISSING' },
    });
    const ready = secret.ready();
    volume.publish({ password: 'late' });
    await secret.check();
    expect((await ready).value).toBe('late');
  });

  test('a directory', async () => {
    const { volume } = openSecret();
    volume.publish({ password: 'x' });
    const secret = new SecretFile(volume.directory);
    onTestFinished(() => secret.close());
    await expect(secret.get()).rejects.toMatchObject({
      message: expect.stringContaining('is a directory') as string,
    });
  });
});

test('a signal ends waiting also while the file system does not answer, and before anything has begun', async () => {
  const fs = fsWith({ each: () => new Promise(() => undefined) }, 'unknown');
  const { secret } = openSecret({ fs });
  const stopping = new AbortController();
  const waiting = [secret.ready(stopping.signal), secret.changed({ signal: stopping.signal })];
  const ends = Promise.allSettled(waiting);
  stopping.abort(new Error('enough'));
  const enough = { status: 'rejected', reason: stopping.signal.reason as Error };
  expect(await ends).toEqual([enough, enough]);
  await expect(secret.ready(stopping.signal)).rejects.toThrow('enough');
});

test('a wait that is over leaves no listener on its signal', async () => {
  const { volume, secret } = openSecret();
  volume.publish({ password: 'one' });
  const { signal } = new AbortController();
  await secret.ready(signal);
  const next = secret.changed({ signal });
  volume.publish({ password: 'two' });
  await secret.check();
  expect((await next).value).toBe('two');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('trim is refused where it has no effect', () => {
  const options = { trim: true, encoding: 'hex' } as const;
  expect(() => new SecretFile('/etc/key', options)).toThrow(/"trim" has no effect with the encoding "hex"/);
  expect(() => credentials('/etc/db', options)).toThrow(/"trim" has no effect with the encoding "hex"/);
});

test('username and password are always of one revision', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'login'));
  volume.publish({ user: 'user-0', pass: 'pass-0\n' });
  const login = credentials(volume.directory, { keys: { username: 'user', password: 'pass' } });
  onTestFinished(() => login.close());
  const seen: string[] = [];
  login.on('change', ({ current }) => seen.push(`${current.username} ${current.password}`));
  await login.start();
  for (let index = 1; index <= 200; index += 1) {
    volume.publish({ user: `user-${index}`, pass: `pass-${index}` });
    if (index % 10 === 0) await login.check();
  }
  expect((await login.get()).password).toBe('pass-200');
  expect(seen.filter((both) => !/^user-(\d+) pass-\1$/.test(both))).toEqual([]);
  volume.publish({ user: 'user-201' });
  await login.check();
  expect(login.current?.username).toBe('user-200');
  expect(login.status().rejected).toMatchObject({ code: 'ERR_SECRET_MISSING' });
});

test('another username is a change, although the password stays', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'login'));
  volume.publish({ username: 'app', password: 'same' });
  const login = credentials(volume.directory);
  onTestFinished(() => login.close());
  await login.start();
  const seen: string[] = [];
  login.on('change', ({ current }) => seen.push(current.username));
  volume.publish({ username: 'app-2', password: 'same' });
  await login.check();
  expect(seen).toEqual(['app-2']);
  expect((await login.get()).username).toBe('app-2');
});

test('printed forms never contain the secret', async () => {
  const { volume, secret } = openSecret();
  volume.publish({ password: 'hunter2', username: 'app' });
  const login = credentials(volume.directory);
  onTestFinished(() => login.close());
  const values: unknown[] = [await secret.get(), await login.get(), secret, login];
  for (const value of [...values, { ...(values[1] as object) }, new Error('failed', { cause: values[1] })]) {
    expect(`${inspect(value, { depth: 9, showHidden: true })}${JSON.stringify(value)}`).not.toContain(
      'hunter2',
    );
  }
  expect(values.slice(0, 2).map(String)).toEqual(['[redacted]', 'Credentials(app, [redacted])']);
});

test.each([
  ['an unknown encoding', () => new SecretFile('/p', { encoding: 'rot13' as never }), /encoding/],
  [
    'an option that makes no sense for a secret',
    () => new SecretFile('/p', { recursive: true } as never),
    /recursive/,
  ],
  ['an empty path', () => new SecretFile(''), /path/],
  ['an empty key', () => credentials('/p', { keys: { username: '' } }), /username/],
])('%s is a TypeError', (_name, make, message) => {
  expect(make).toThrow(TypeError);
  expect(make).toThrow(message);
});

test('an option that is undefined has its default', async () => {
  const { volume, secret } = openSecret({
    backend: 'poll',
    resyncIntervalMs: undefined,
    persistent: undefined,
  });
  volume.publish({ password: 'good\n' });
  await secret.start();
  const next = secret.changed({ previous: undefined });
  volume.publish({ password: 'better' });
  await secret.check();
  expect((await next).value).toBe('better');
});
