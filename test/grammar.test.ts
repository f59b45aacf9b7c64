/**
 * What all classes have in common, those of the packages as well, so that a user who knows one of them knows the others.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

import {
  AtomicVolume,
  credentials,
  ResilientWatcher,
  SecretFile,
  TokenFile,
  TokenRefresher,
  type Acceptance,
  type ComponentStatus,
  type Degradation,
  type Expiry,
  type LastError,
  type Readable,
  type Recovery,
  type ResilientWatcherEvents,
  type Restart,
  type ServiceAccountToken,
  type TokenFileEvents,
  type TokenRefresherEvents,
  type Unreadable,
  type ValueSource,
  type WatchedValueEvents,
} from 'resilient-watcher';
import { ReloadAction, type ReloadActionEvents } from '@resilient-watcher/cli/action';
import { ConfigLoader, FileProvider, type ConfigLoaderEvents } from 'resilient-watcher/config';
import { VolumePublisher, type VolumePublisherEvents } from '@resilient-watcher/csi';
import { FakeClock, FakeTokenClient, KubeletVolume } from 'resilient-watcher/testing';
import { ServedTls, TlsFiles, type TlsFilesEvents } from 'resilient-watcher/tls';
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from './support/temporary-directory.js';

/** The part that all classes have. */
interface AnyComponent extends AsyncDisposable {
  readonly name: string;
  readonly state: string;
  start(): Promise<void>;
  close(): Promise<void>;
  status(): ComponentStatus;
  toJSON(): ComponentStatus;
}

const name = 'a name of its own';

const CLASSES: Readonly<Record<string, (directory: string, clock: FakeClock) => AnyComponent>> = {
  ResilientWatcher: (directory, clock) => new ResilientWatcher(join(directory, 'key'), { clock, name }),
  TokenFile: (directory, clock) => new TokenFile(join(directory, 'key'), { format: 'opaque', clock, name }),
  TokenRefresher: (_, clock) =>
    new TokenRefresher({ client: new FakeTokenClient({ clock }), tokenFile: false, clock, name }),
  SecretFile: (directory, clock) => new SecretFile(join(directory, 'key'), { clock, name }),
  credentials: (directory, clock) => credentials(directory, { keys: { password: 'key' }, clock, name }),
  TlsFiles: (directory, clock) => new TlsFiles(directory, { clock, name }),
  ServedTls: (directory, clock) => {
    const files = new TlsFiles(directory, { clock });
    onTestFinished(() => files.close());
    return new ServedTls(createServer(), files, { name });
  },
  ConfigLoader: (directory, clock) =>
    new ConfigLoader({
      sources: [{ provider: new FileProvider(join(directory, 'app.json'), { clock }) }],
      name,
    }),
  AtomicVolume: (directory, clock) => new AtomicVolume(join(directory, 'written'), { clock, name }),
  VolumePublisher: (_, clock) => new VolumePublisher({ clock, name }),
  ReloadAction: (_, clock) =>
    new ReloadAction({ action: { name: 'custom', run: () => Promise.resolve() }, clock, name }),
};

describe.each(Object.keys(CLASSES))('%s', (kind) => {
  test('has the name that it was given, a state, and a status that is JSON, from the beginning to the end', async () => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ key: 's3cret', 'app.json': '{}' });
    const component = CLASSES[kind]?.(volume.directory, new FakeClock());
    if (!component) throw new Error(`there is no ${kind}`);
    onTestFinished(() => component.close());
    const assertStatus = (): void => {
      const status = component.status();
      expect(JSON.parse(JSON.stringify(component))).toStrictEqual(status);
      expect(status).toMatchObject({ name: component.name, state: component.state });
    };
    expect(component.name).toBe(name);
    expect(component.state).toBe('idle');
    expect(component.status().lastError).toBeNull();
    assertStatus();
    const started = component.start();
    expect(component.start()).toBe(started);
    // Some find nothing that they can use, and say so.
    await started.catch(() => undefined);
    assertStatus();
    const { lastError } = component.status();
    if (lastError) expect(Object.keys(lastError)).toEqual(['name', 'code', 'message', 'at']);
    const closed = component.close();
    expect(component.close()).toBe(closed);
    await closed;
    expect(component.state).toBe('closed');
    assertStatus();
    await component[Symbol.asyncDispose]();
  });
});

test('events of the same name carry the same payload in all classes; some add what is their own', () => {
  interface Payloads {
    change: [{ readonly current: unknown; readonly previous: unknown }];
    unreadable: [Unreadable];
    readable: [Readable];
    degraded: [Degradation];
    recovered: [Recovery];
    restart: [Restart];
    warning: [{ readonly code: string; readonly message: string }];
    rejected: [{ readonly error: Error }];
    accepted: [Acceptance];
    failed: [{ readonly error: Error }];
    expired: [Expiry<unknown>];
    token: [{ readonly token: ServiceAccountToken }];
    skew: [{ readonly aheadMs: number; readonly token: ServiceAccountToken }];
    error: [Error];
  }
  type Of<Events> = Pick<Events, keyof Events & keyof Payloads>;
  type Expected<Events> = Pick<Payloads, keyof Events & keyof Payloads>;
  expectTypeOf<Of<ResilientWatcherEvents>>().toExtend<Expected<ResilientWatcherEvents>>();
  expectTypeOf<Of<TokenFileEvents>>().toExtend<Expected<TokenFileEvents>>();
  expectTypeOf<Of<TokenRefresherEvents>>().toExtend<Expected<TokenRefresherEvents>>();
  expectTypeOf<Of<WatchedValueEvents<string>>>().toExtend<Expected<WatchedValueEvents<string>>>();
  expectTypeOf<Of<TlsFilesEvents>>().toExtend<Expected<TlsFilesEvents>>();
  expectTypeOf<Of<ConfigLoaderEvents<object>>>().toExtend<Expected<ConfigLoaderEvents<object>>>();
  expectTypeOf<Of<VolumePublisherEvents>>().toExtend<Expected<VolumePublisherEvents>>();
  expectTypeOf<Of<ReloadActionEvents>>().toExtend<Expected<ReloadActionEvents>>();
});

test('whatever hands out a value is a ValueSource, and lastError has one shape', () => {
  expectTypeOf<TokenFile>().toExtend<ValueSource<unknown>>();
  expectTypeOf<TokenRefresher>().toExtend<ValueSource<unknown>>();
  expectTypeOf<SecretFile>().toExtend<ValueSource<unknown>>();
  expectTypeOf<ReturnType<typeof credentials>>().toExtend<ValueSource<unknown>>();
  expectTypeOf<TlsFiles>().toExtend<ValueSource<unknown>>();
  expectTypeOf<LastError>().toEqualTypeOf<{
    readonly name: string;
    readonly code: string | null;
    readonly message: string;
    readonly at: number;
  }>();
});

test('a misspelt event is an error of TypeScript; without it nothing is called, as with the EventEmitter of Node.js', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'one');
  const watcher = new ResilientWatcher(path);
  onTestFinished(() => watcher.close());
  // @ts-expect-error -- there is no such event
  watcher.on('chnage', () => expect.unreachable());
  await watcher.start();
});
