/** Whatever rejects contents says when the contents are in use again: other good ones, or the same as before. */
import { join } from 'node:path';

import { credentials, logTo, observe, SecretFile, TokenFile, type Point } from 'resilient-watcher';
import { ConfigLoader, DirectoryProvider, FileProvider, VolumeProvider } from 'resilient-watcher/config';
import { FakeClock, KubeletVolume, mintTestToken, ScriptedBackend } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from './support/certificates.js';
import { temporaryDirectory } from './support/temporary-directory.js';
import { secretOf } from './support/tls-sets.js';

const root = createAuthority('root');
const [one, two] = [createServerPair(root), createServerPair(root)];

/** What all of them have. */
interface Rejecting {
  readonly name: string;
  on(event: 'change' | 'rejected' | 'accepted', listener: (payload: object) => void): unknown;
  start(): Promise<void>;
  check(): Promise<void>;
  close(): Promise<void>;
  status(): { readonly lastError: { readonly message: string } | null };
}

interface Case {
  readonly open: (volume: KubeletVolume, options: object) => Rejecting;
  readonly good: Record<string, string>;
  readonly other: Record<string, string>;
  readonly bad: Record<string, string>;
}

function validate(config: unknown): object {
  if (Number.isNaN(Number((config as { a: unknown }).a))) throw new Error('a must be a number');
  return config as object;
}

const CASES: Readonly<Record<string, Case>> = {
  ConfigLoader: {
    open: (volume, options) =>
      new ConfigLoader({ sources: [{ provider: new FileProvider(volume.path('app.yaml'), options) }] }),
    ...{ good: { 'app.yaml': 'a: 1' }, other: { 'app.yaml': 'a: 2' }, bad: { 'app.yaml': 'a: [' } },
  },
  'ConfigLoader with a VolumeProvider': {
    open: (volume, options) =>
      new ConfigLoader({ sources: [{ provider: new VolumeProvider(volume.directory, options) }], validate }),
    ...{ good: { a: '1' }, other: { a: '2' }, bad: { a: 'x' } },
  },
  'ConfigLoader with a DirectoryProvider': {
    open: (volume, options) =>
      new ConfigLoader({ sources: [{ provider: new DirectoryProvider(volume.directory, options) }] }),
    ...{ good: { '1.yaml': 'a: 1' }, other: { '1.yaml': 'a: 2' }, bad: { '1.yaml': 'a: [' } },
  },
  'ConfigLoader with a validator': {
    open: (volume, options) =>
      new ConfigLoader({
        sources: [{ provider: new FileProvider(volume.path('app.json'), options) }],
        validate,
      }),
    ...{
      good: { 'app.json': '{"a":1}' },
      other: { 'app.json': '{"a":2}' },
      bad: { 'app.json': '{"a":"x"}' },
    },
  },
  TlsFiles: {
    open: (volume, options) => new TlsFiles(volume.directory, options),
    ...{ good: secretOf(one), other: secretOf(two), bad: secretOf({ cert: one.cert, key: two.key }) },
  },
  SecretFile: {
    open: (volume, options) => new SecretFile(volume.path('key'), options),
    ...{ good: { key: 'one' }, other: { key: 'two' }, bad: { key: '' } },
  },
  credentials: {
    open: (volume, options) => credentials(volume.directory, options),
    good: { username: 'a', password: 'one' },
    other: { username: 'a', password: 'two' },
    bad: { username: 'a' },
  },
  TokenFile: {
    open: (volume, options) => new TokenFile(volume.path('token'), options),
    good: { token: mintTestToken({ jti: '1' }) },
    other: { token: mintTestToken({ jti: '2' }) },
    bad: { token: 'no token' },
  },
};

async function scene({ open, good }: Case): Promise<{
  readonly publish: (contents: Record<string, string>) => Promise<void>;
  readonly component: Rejecting;
  readonly events: readonly string[];
  readonly lines: readonly string[];
  readonly points: readonly Point[];
  readonly clock: FakeClock;
}> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish(good);
  const clock = new FakeClock(Date.now() + 1_000);
  const component = open(volume, { backend: new ScriptedBackend(), resyncIntervalMs: 0, clock });
  onTestFinished(() => component.close());
  const events: string[] = [];
  for (const event of ['change', 'rejected', 'accepted'] as const)
    component.on(event, () => events.push(event));
  await component.start();
  const lines: string[] = [];
  const points: Point[] = [];
  const log = (_fields: object, message: string): void => void lines.push(message);
  const logged = logTo({ debug: log, info: log, warn: log, error: log });
  const observed = observe({ point: (point) => points.push(point) });
  onTestFinished(() => {
    logged.close();
    observed.close();
  });
  const publish = async (contents: Record<string, string>): Promise<void> => {
    volume.publish(contents);
    await component.check();
  };
  return { publish, component, events, lines, points, clock };
}

describe.each(Object.entries(CASES))('%s', (_name, each) => {
  test('says that a rollback to the same contents is in use: an event, a line, a message, and lastError', async () => {
    const { publish, component, events, lines, points } = await scene(each);
    await publish(each.bad);
    expect(component.status().lastError).not.toBeNull();
    await publish(each.good);
    expect(events).toEqual(['change', 'rejected', 'accepted']);
    expect(lines.at(-1)).toMatch(/accepted again/);
    expect(points.at(-1)?.name).toBe('accepted');
    expect(component.status().lastError).toBeNull();
    await publish(each.good);
    expect(events).toHaveLength(3);
  });

  test('says so once after several rejections, and after the change to other contents', async () => {
    const { publish, component, events } = await scene(each);
    await publish(each.bad);
    await publish({ ...each.bad, other: 'file' });
    await publish(each.other);
    expect(events.filter((event) => event !== 'rejected')).toEqual(['change', 'change', 'accepted']);
    expect(component.status().lastError).toBeNull();
    await publish(each.bad);
    await publish(each.good);
    expect(events.slice(-3)).toEqual(['rejected', 'change', 'accepted']);
  });
});

test.each([
  ['SecretFile', (path: string, options: object): Rejecting => new SecretFile(path, options), 'one'],
  ['TokenFile', (path: string, options: object): Rejecting => new TokenFile(path, options), mintTestToken()],
])('a %s whose file is missing at first says that it is there', async (_name, open, contents) => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ other: '' });
  const clock = new FakeClock(Date.now());
  const component = open(volume.path('key'), { backend: new ScriptedBackend(), resyncIntervalMs: 0, clock });
  onTestFinished(() => component.close());
  const events: string[] = [];
  component.on('rejected', () => events.push('rejected'));
  component.on('change', () => events.push('change'));
  component.on('accepted', (payload) => events.push(`accepted ${JSON.stringify(payload)}`));
  await component.start();
  await clock.advance(5_000);
  volume.publish({ key: contents });
  await component.check();
  expect(events).toEqual(['rejected', 'change', 'accepted {"rejectedMs":5000}']);
  expect(component.status().lastError).toBeNull();
});

test('a ConfigLoader says it of each source, also while another one is still rejected', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ 'a.json': '{"a":1}', 'b.json': '{"b":1}' });
  const provider = (name: string): FileProvider =>
    new FileProvider(volume.path(name), { backend: new ScriptedBackend(), resyncIntervalMs: 0 });
  const loader = new ConfigLoader({
    sources: [{ provider: provider('a.json') }, { provider: provider('b.json') }],
  });
  onTestFinished(() => loader.close());
  const accepted: string[] = [];
  loader.on('accepted', ({ source }) => accepted.push(source.replace(/.*\//, '')));
  loader.on('rejected', () => {});
  await loader.load();
  const publish = async (a: string, b: string): Promise<void> => {
    volume.publish({ 'a.json': a, 'b.json': b });
    await loader.check();
  };
  await publish('{', '{');
  await publish('{"a":1}', '{');
  expect(accepted).toEqual(['a.json']);
  expect(loader.status().lastError).not.toBeNull();
  await publish('{"a":1}', '{"b":2}');
  expect(accepted).toEqual(['a.json', 'b.json']);
  expect(loader.status().lastError).toBeNull();
});

test('a ConfigLoader whose trial failed says when the sources are changed back', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ 'a.json': '{"a":1}' });
  const provider = new FileProvider(volume.path('a.json'), {
    ...{ backend: new ScriptedBackend(), resyncIntervalMs: 0 },
  });
  const loader = new ConfigLoader<{ a: number }>({
    sources: [{ provider }],
    validate: (config) => config as { a: number },
    trial: { ms: 1_000, healthy: ({ a }) => a === 1 || Promise.reject(new Error('not healthy')) },
  });
  onTestFinished(() => loader.close());
  const events: string[] = [];
  for (const event of ['reverted', 'accepted'] as const) loader.on(event, () => events.push(event));
  await loader.load();
  for (const a of [2, 1]) {
    volume.publish({ 'a.json': JSON.stringify({ a }) });
    await loader.check();
  }
  expect(events).toEqual(['reverted', 'accepted']);
  expect(loader.status().lastError).toBeNull();
});
