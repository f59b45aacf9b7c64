/** A first read in the gap of a swap that removes `..data` and links it again: everything waits for its end. */
import { join } from 'node:path';

import {
  AtomicVolume,
  credentials,
  readVolume,
  ResilientWatcher,
  SecretFile,
  TokenFile,
  waitFor,
} from 'resilient-watcher';
import { ConfigLoader, FileProvider, VolumeProvider } from 'resilient-watcher/config';
import { FakeClock, KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Shorter than the default of `missingGraceMs`, ms. */
const GAP_MS = 400;
const LONG_MS = 1_000;

const { cert, key } = await createServerPair(await createAuthority('root'));

/** The first read of something, by the part of the library that makes it. */
const reads: Record<string, (directory: string, clock: FakeClock) => Promise<unknown>> = {
  SecretFile: (directory, clock) => closing(new SecretFile(join(directory, 'password'), { clock })).get(),
  credentials: (directory, clock) => closing(credentials(directory, { clock })).get(),
  TlsFiles: (directory, clock) => closing(new TlsFiles(directory, { clock })).get(),
  TokenFile: (directory, clock) => closing(new TokenFile(join(directory, 'token'), { clock })).get(),
  readVolume: (directory, clock) => readVolume(directory, { clock }),
  'AtomicVolume.read': (directory, clock) => closing(new AtomicVolume(directory, { clock })).read(),
  'ConfigLoader, of a file': (directory, clock) =>
    load(new FileProvider(join(directory, 'app.json'), { clock })),
  'ConfigLoader, of a volume': (directory, clock) => load(new VolumeProvider(directory, { clock })),
  waitFor: (directory, clock) =>
    waitFor(join(directory, 'password'), undefined, { clock, timeoutMs: LONG_MS }),
  'ResilientWatcher.start': async (directory, clock) => {
    const watcher = closing(
      new ResilientWatcher([join(directory, 'password'), join(directory, 'app.json')], { clock }),
    );
    await watcher.start();
    expect(watcher.current?.files.size).toBe(2);
  },
};

function closing<T extends { close(): Promise<void> }>(component: T): T {
  onTestFinished(() => component.close());
  return component;
}

function load(provider: FileProvider | VolumeProvider): Promise<unknown> {
  return closing(new ConfigLoader({ sources: [{ provider }] })).load();
}

/** In the gap of its second update; returns what ends it. */
function volumeInGap(clock: FakeClock): { directory: string; finish: () => void } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'), { swap: 'remove' });
  const token = mintTestToken({
    iat: Math.floor(clock.now() / 1_000),
    exp: Math.floor(clock.now() / 1_000) + 3_600,
  });
  const rest = { 'tls.crt': cert, 'tls.key': key, username: 'app', token, 'app.json': '{"a": 1}' };
  volume.publish({ ...rest, password: 'one' });
  const steps = volume.steps({ ...rest, password: 'two' });
  while (volume.revision !== undefined) steps.next();
  return {
    directory: volume.directory,
    finish: () => {
      for (const _ of steps) continue;
    },
  };
}

/** A watcher reports what is missing, and a volume that was never written is empty. */
const NEVER_REJECT = ['ResilientWatcher.start', 'AtomicVolume.read'];

/** Lets time pass until it is settled. */
async function outcomeOf(read: Promise<unknown>, clock: FakeClock): Promise<string> {
  const state: { outcome?: string } = {};
  read.then(
    () => (state.outcome = 'read'),
    (error: unknown) => (state.outcome = String(error)),
  );
  // Modules are loaded meanwhile, which takes real time.
  while (state.outcome === undefined) await clock.advance(20);
  return state.outcome;
}

describe.each(Object.keys(reads))('%s', (what) => {
  test('waits for the end of the gap', async () => {
    const clock = new FakeClock(Date.now() + 60_000);
    const { directory, finish } = volumeInGap(clock);
    const read = reads[what]?.(directory, clock) ?? Promise.reject(new Error(what));
    read.catch(() => undefined);
    await clock.advance(GAP_MS);
    finish();
    expect(await outcomeOf(read, clock)).toBe('read');
  });
});

test.each(Object.keys(reads).filter((what) => !NEVER_REJECT.includes(what)))(
  '%s rejects if the gap does not end',
  async (what) => {
    const clock = new FakeClock(Date.now() + 60_000);
    const { directory } = volumeInGap(clock);
    const read = reads[what]?.(directory, clock) ?? Promise.resolve();
    expect(await outcomeOf(read, clock)).toMatch(/Error/);
  },
);
