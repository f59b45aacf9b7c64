/** What stands for the process stands for all copies of the library in it, and a copy with another shape of it says so. */
import { once } from 'node:events';
import * as nodeFs from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import * as tls from 'node:tls';

import * as otelApi from '@opentelemetry/api';
import parcel from '@parcel/watcher';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import client from 'prom-client';
import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parse } from 'yaml';

import type { RowName } from '../../src/core/process-state.js';
import { Outcome } from '../../src/core/scheduling/outcome.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Another copy of the library, as two packages of a program may bring them. @param rows of which it has another shape. */
async function copyOf(...rows: RowName[]) {
  vi.resetModules();
  const { ROWS } = await import('../../src/core/process-state.js');
  for (const row of rows) Object.assign(ROWS[row], { shape: ROWS[row].shape + 1 });
  return {
    ...(await import('resilient-watcher')),
    ...(await import('resilient-watcher/config')),
    ...(await import('resilient-watcher/kubernetes')),
    ...(await import('resilient-watcher/otel')),
    ...(await import('resilient-watcher/prometheus')),
    ...(await import('resilient-watcher/tls')),
    ...(await import('@resilient-watcher/sync-pods')),
    // There is no entry point that calls only these.
    ...(await import('../../src/core/scheduling/event-loop.js')),
    ...(await import('../../src/fs/mounts.js')),
    ...(await import('../../src/watch/backends/parcel-watch.js')),
  };
}

// The copies of a test are the first ones in their process.
beforeEach(() => {
  const key = Symbol.for('resilient-watcher.process-state');
  const state: unknown = Reflect.get(globalThis, key);
  Reflect.deleteProperty(globalThis, key);
  onTestFinished(() => void Reflect.set(globalThis, key, state));
});

// The next file has a copy of its own.
afterAll(() => void vi.resetModules());

type Copy = Awaited<ReturnType<typeof copyOf>>;

const isParted = 'setDefaultCACertificates' in tls;
const signers = [new CertificateSigner({ name: 'one' }), new CertificateSigner({ name: 'two' })] as const;
const [one, two] = signers.map(({ certificate }) => certificate) as [string, string];

function volumeOf(files: Readonly<Record<string, string>>): KubeletVolume {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish(files);
  return volume;
}

function closedLater<C extends { close(): Promise<void> }>(component: C): C {
  onTestFinished(() => component.close());
  return component;
}

/** What is warned of until the next turns are over. */
async function warnedIn(work: () => unknown): Promise<string[]> {
  const warnings: string[] = [];
  const listener = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listener);
  try {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
    return warnings;
  } finally {
    process.off('warning', listener);
  }
}

function tlsFilesOf({ TlsFiles }: Copy, ca: string) {
  const { chain, key } = signers[0].issue({ dnsNames: ['localhost'] });
  const volume = volumeOf({ 'tls.crt': chain, 'tls.key': key, 'ca.crt': ca });
  return closedLater(new TlsFiles(volume.directory));
}

function meterProvider() {
  const instrument = { add() {}, record() {}, addCallback() {}, removeCallback() {} };
  const create = () => instrument;
  const meter = {
    createCounter: create,
    createHistogram: create,
    createObservableGauge: create,
    createObservableUpDownCounter: create,
  };
  return { getMeter: () => meter } as unknown as otelApi.MeterProvider;
}

/** Tries each row with two copies. Returns whether there is one state for both. */
const TRIES: Readonly<Record<RowName, (a: Copy, b: Copy) => boolean | Promise<boolean>>> = {
  async running(a, b) {
    const watcher = closedLater(new b.ResilientWatcher(volumeOf({ key: '1' }).path('key'), { name: 'of b' }));
    await watcher.start();
    const registry = new client.Registry();
    using _metrics = a.collectMetrics({ client, registry });
    return (await registry.metrics()).includes('target="of b"');
  },
  telemetry(a, b) {
    const idle = { request: () => Promise.resolve(), lines: () => [] };
    const lines: string[] = [];
    const line = (_: object, text: string): void => void lines.push(text);
    using _log = a.logTo({ debug: line, info: line, warn: line, error: line });
    const sync = closedLater(new b.PodSync({ client: idle as never }));
    sync.emit('synced', { namespace: 'shop', pod: 'web', delayMs: 70 });
    return lines.some((text) => text.includes('shop/web'));
  },
  async observers(a, b) {
    const watcher = closedLater(new b.ResilientWatcher('/etc/hosts'));
    const registry = new client.Registry();
    using _metrics = a.collectMetrics({ client, registry });
    const error = new b.BackendError('ERR_BACKEND_DOWN', 'fs', 'no');
    const warned = await warnedIn(() => watcher.emit('unreadable', { error: error }));
    return warned.some((text) => text.includes('unreadable: no'));
  },
  meters(a, b) {
    const provider = meterProvider();
    using _first = a.instrument({ api: otelApi, meterProvider: provider });
    try {
      b.instrument({ api: otelApi, meterProvider: provider }).close();
      return false;
    } catch (error) {
      expect(String(error)).toContain('has these metrics already');
      return true;
    }
  },
  async watches(a, b) {
    const volume = volumeOf({ key: '1' });
    const opened: string[] = [];
    const watch = ((path: string, ...rest: never[]) => {
      opened.push(path);
      return nodeFs.watch(path, ...rest);
    }) as typeof nodeFs.watch;
    const fs = { ...nodeFs, watch };
    const [first, second] = [a, b].map(({ ResilientWatcher }) =>
      closedLater(new ResilientWatcher(volume.directory, { fs, resyncIntervalMs: 0 })),
    ) as [InstanceType<Copy['ResilientWatcher']>, InstanceType<Copy['ResilientWatcher']>];
    await first.start();
    await second.start();
    const isShared = new Set(opened).size === opened.length;
    await first.close();
    // What the other one needs is still watched.
    const changed = once(second, 'change');
    volume.publish({ key: '2' });
    await changed;
    return isShared;
  },
  async parcel(a, b) {
    const subscribe = vi.spyOn(parcel, 'subscribe');
    onTestFinished(() => subscribe.mockRestore());
    const path = temporaryDirectory();
    const root = { path, identity: path };
    const idle = { changed: () => {}, died: () => {} };
    const left = await a.joinTree(root, [root], idle);
    const heard = new Outcome<void>();
    const listener = { ...idle, changed: () => heard.resolve() };
    const tree = await b.joinTree(root, [root], listener);
    onTestFinished(() => b.leaveTree(tree as never, listener));
    await a.leaveTree(left as never, idle);
    // What the other one needs is still watched.
    nodeFs.writeFileSync(join(path, 'new'), '1');
    await heard.promise;
    return subscribe.mock.calls.length === 1;
  },
  async mounts(a, b) {
    const fs = { ...nodeFs };
    let finish = (): void => {};
    let isCalled = false;
    const first = a.Mounts.of(fs).inTurn('/', () => new Promise<void>((resolve) => (finish = resolve)));
    const second = b.Mounts.of(fs).inTurn('/', () => {
      isCalled = true;
      return Promise.resolve();
    });
    await new Promise((resolve) => setImmediate(resolve));
    const hasWaited = !isCalled;
    finish();
    await Promise.all([first, second]);
    return hasWaited;
  },
  async turn(a, b) {
    await a.nextTurn();
    a.startTurnBudget();
    while (!a.isTurnSpent());
    return b.isTurnSpent();
  },
  async writes(a, b) {
    const path = join(temporaryDirectory(), 'file');
    const data = new PassThrough();
    data.write('fir');
    const first = a.atomicWriteFile(path, data);
    // Now the first one waits for its data.
    await expect.poll(() => nodeFs.readdirSync(join(path, '..'))).toHaveLength(1);
    b.atomicWriteFileSync(path, 'second');
    data.end('st');
    const { written } = await first;
    expect(nodeFs.readFileSync(path, 'utf8')).toBe(written ? 'first' : 'second');
    return !written;
  },
  async merges(a, b) {
    const path = join(temporaryDirectory(), 'kubeconfig');
    const token = a.tokenFromText(mintTestToken({ iat: 1, exp: 2 ** 31 }));
    const { signal } = new AbortController();
    const sinks = [a, b, a, b].map(({ kubeconfigSink }, at) =>
      kubeconfigSink({ path, server: 'https://10.0.0.1', user: `user ${at}`, merge: true }),
    );
    await Promise.all(sinks.map(async (sink) => sink(token, { signal })));
    const { users } = parse(nodeFs.readFileSync(path, 'utf8')) as { users: unknown[] };
    return users.length === sinks.length;
  },
  async places(a, b) {
    const path = join(temporaryDirectory(), 'app.json');
    nodeFs.writeFileSync(path, '{\n  "port": "no"\n}');
    const provider = new a.FileProvider(path, { parser: b.jsonParser });
    const validate = (): never => {
      throw Object.assign(new Error('not a number'), {
        issues: [{ message: 'not a number', path: ['port'] }],
      });
    };
    const loader = closedLater(new b.ConfigLoader({ sources: [{ provider }], validate }));
    const error: unknown = await loader.start().catch((error: unknown) => error);
    const [problem] = (error as { problems: { line?: number }[] }).problems;
    return problem?.line === 2;
  },
  async authorities(a, b) {
    if (!isParted) return true;
    const calls = tls as unknown as {
      getCACertificates(type?: 'default'): string[];
      setDefaultCACertificates(certificates: readonly string[]): void;
    };
    const initial = calls.getCACertificates('default');
    onTestFinished(() => calls.setDefaultCACertificates(initial));
    const followed = [];
    for (const [copy, ca] of [
      [a, one],
      [b, two],
    ] as const) {
      const files = closedLater(new copy.TlsFiles({ ca: volumeOf({ 'ca.crt': ca }).path('ca.crt') }));
      followed.push(closedLater(await copy.followDefaultCa(files)));
    }
    const body = (pem: string): string => pem.replace(/\s/g, '');
    const trusted = new Set(calls.getCACertificates('default').map(body));
    return [one, two].every((ca) => trusted.has(body(ca)));
  },
  async servers(a, b) {
    const server = createServer({ requestCert: true });
    const first = await a.serveTls(server, tlsFilesOf(a, one + two));
    await first.close();
    const set = vi.spyOn(server, 'setSecureContext');
    const files = tlsFilesOf(b, one);
    closedLater(await b.serveTls(server, files));
    return String(set.mock.lastCall?.[0].ca) === one;
  },
  async connections(a, b) {
    const server = createServer({ requestCert: true });
    closedLater(await a.serveTls(server, tlsFilesOf(a, one)));
    const { emit } = server;
    closedLater(await b.serveTls(server, tlsFilesOf(b, one)));
    return server.emit === emit;
  },
};

/** Two copies without an order may have one by chance, and what is not tried is not known. */
const UNCERTAIN: readonly RowName[] = ['merges', ...(isParted ? [] : (['authorities'] as const))];

describe.each(Object.entries(TRIES) as [RowName, (typeof TRIES)[RowName]][])('%s', (row, tryIt) => {
  test('stands for both copies', async () => {
    const [a, b] = [await copyOf(), await copyOf()];
    expect(a.ResilientWatcher).not.toBe(b.ResilientWatcher);
    const warnings = await warnedIn(async () => expect(await tryIt(a, b)).toBe(true));
    expect(warnings.filter((text) => text.includes('versions'))).toEqual([]);
  });

  test('stands for one copy if the other one has another shape of it, which says so once', async () => {
    const [a, b] = [await copyOf(), await copyOf(row)];
    const warnings = await warnedIn(async () => {
      const isOne = await tryIt(a, b);
      if (!UNCERTAIN.includes(row)) expect(isOne).toBe(false);
      await tryIt(a, b);
    });
    const said = `Two versions of resilient-watcher in this process do not share "${row}"`;
    if (row !== 'authorities' || isParted)
      expect(warnings.filter((text) => text.includes('versions')).map((text) => text.split(':')[0])).toEqual([
        said,
      ]);
  });
});
