/** What is shown of components that have a watcher of their own. */
import { join } from 'node:path';

import client, { Registry } from 'prom-client';
import { credentials, logTo, SecretFile, TokenFile } from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { FakeClock, KubeletVolume, mintTestToken, ScriptedBackend } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { secretOf } from '../support/tls-sets.js';

interface Part {
  start(): Promise<unknown>;
  check(): Promise<unknown>;
  close(): Promise<void>;
}

type Make = (volume: KubeletVolume, clock: FakeClock) => Part;

const settings = { name: 'db', backend: new ScriptedBackend() };

test.each<[string, Make]>([
  ['SecretFile', (volume, clock) => new SecretFile(volume.path('password'), { ...settings, clock })],
  ['credentials', (volume, clock) => credentials(volume.directory, { ...settings, clock })],
  ['TokenFile', (volume, clock) => new TokenFile(volume.path('token'), { ...settings, clock })],
  ['ConfigLoader', loaderOf],
])('an update and the end of a %s are one line each', async (kind, make) => {
  const lines: string[] = [];
  const line = (_fields: object, text: string): void => void lines.push(text);
  const log = logTo({ debug: () => undefined, info: line, warn: line, error: line });
  const volume = new KubeletVolume(join(temporaryDirectory(), 'mounted'));
  volume.publish({ username: 'app', password: 'one', token: mintTestToken({ jti: '1' }) });
  const part = make(volume, new FakeClock());
  onTestFinished(() => part.close());
  await part.start();
  lines.length = 0;

  volume.publish({ username: 'app', password: 'two', token: mintTestToken({ jti: '2' }) });
  await part.check();
  await part.close();
  log.close();
  const what = kind === 'ConfigLoader' ? ': password' : '';
  expect(lines).toEqual([`${kind} "db": changed${what}`, `${kind} "db": closed`]);
});

test('what happens to the watcher of a SecretFile is one line of the log', async () => {
  const lines: string[] = [];
  const line = (_fields: object, text: string): void => void lines.push(text);
  const log = logTo({ debug: () => undefined, info: () => undefined, warn: line, error: line });
  onTestFinished(() => log.close());
  const volume = new KubeletVolume(join(temporaryDirectory(), 'mounted'));
  volume.publish({ password: 'one' });
  const clock = new FakeClock();
  const backend = new ScriptedBackend();
  const secret = new SecretFile(volume.path('password'), { name: 'db', backend, clock });
  onTestFinished(() => secret.close());
  await secret.start();
  backend.refuse(...Array.from({ length: 20 }, () => new Error('no more watches')));
  backend.fail();
  await clock.advance(60_000);
  expect(lines).toEqual([expect.stringMatching(/^SecretFile "db": /)]);
});

test('a provider that keeps the state of its watcher from the loader does not keep it from the log', async () => {
  const lines: string[] = [];
  const line = (_fields: object, text: string): void => void lines.push(text);
  const log = logTo({ debug: () => undefined, info: () => undefined, warn: line, error: line });
  onTestFinished(() => log.close());
  const volume = new KubeletVolume(join(temporaryDirectory(), 'mounted'));
  volume.publish({ 'app.json': '{}' });
  const clock = new FakeClock();
  const backend = new ScriptedBackend();
  const file = new FileProvider(volume.path('app.json'), { name: 'file', backend, clock });
  const loader = new ConfigLoader({
    sources: [
      {
        provider: {
          name: 'own',
          read: () => file.read(),
          watch: (callback) => file.watch(callback),
          unwatch: () => file.unwatch(),
        },
      },
    ],
    clock,
  });
  onTestFinished(() => loader.close());
  await loader.load();
  backend.refuse(...Array.from({ length: 20 }, () => new Error('no more watches')));
  backend.fail();
  await clock.advance(5_000);
  expect(lines).toContainEqual(expect.stringMatching(/^ResilientWatcher "file": .*no more watches/));
});

function loaderOf(volume: KubeletVolume, clock: FakeClock): Part {
  const provider = new FileProvider(volume.path('password'), {
    backend: new ScriptedBackend(),
    clock,
    parser: { name: 'text', parse: (text) => ({ password: text }) },
  });
  const loader = new ConfigLoader({ name: 'db', sources: [{ provider }], clock });
  const changed = (): Promise<void> => new Promise((resolve) => void loader.once('change', () => resolve()));
  return {
    start: () => loader.load(),
    check: () => Promise.all([changed(), provider.check()]),
    close: () => loader.close(),
  };
}

test('a certificate is logged with its subject, fingerprint and expiry, and a rejected one is visible until it is replaced', async () => {
  const lines: string[] = [];
  const line = (level: string) => (_fields: object, text: string) => void lines.push(`${level} ${text}`);
  const log = logTo({ debug: () => undefined, info: line('info'), warn: line('warn'), error: line('error') });
  onTestFinished(() => log.close());
  const registry = new Registry();
  const metrics = collectMetrics({ client, registry });
  onTestFinished(() => metrics.close());
  const isCurrent = async (): Promise<string | undefined> =>
    /certificate_last_update_successful\{target="web"\} (\d)/.exec(await registry.metrics())?.[1];
  const authority = createAuthority('a');
  const now = Date.now();
  const dates = { notBefore: new Date(now - 7_200_000), notAfter: new Date(now + 3_600_000) };
  const first = createServerPair(authority, dates);
  const second = createServerPair(authority, dates);
  const clock = new FakeClock(now);
  const volume = new KubeletVolume(join(temporaryDirectory(), 'mounted'));
  volume.publish(secretOf(first));
  const files = new TlsFiles(volume.directory, { name: 'web', clock, backend: new ScriptedBackend() });
  onTestFinished(() => files.close());
  const { expiresAt, fingerprint256 } = await files.get();
  expect(await isCurrent()).toBe('1');
  volume.publish(secretOf({ cert: second.cert, key: first.key }));
  await files.check();
  expect(await isCurrent()).toBe('0');
  volume.publish(secretOf(first));
  await files.check();
  expect(await isCurrent()).toBe('1');
  await clock.advance(3_000_000);
  await clock.advance(600_000);
  const about = `CN=localhost, SHA-256 ${fingerprint256}, expires at ${new Date(expiresAt).toISOString()}`;
  const certificate = volume.path('tls.crt');
  expect(lines).toEqual([
    `info TlsFiles "web": changed: ${about}`,
    'info TlsFiles "web": started',
    expect.stringContaining('warn TlsFiles "web": update rejected: '),
    'info TlsFiles "web": accepted again',
    `warn TlsFiles "web": expires soon and has not been replaced: ${about}`,
    `error TlsFiles "web": expired: The certificate in "${certificate}" expired at ${new Date(expiresAt).toISOString()}`,
  ]);
});
