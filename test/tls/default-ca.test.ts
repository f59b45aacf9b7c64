/** The default CA list of the process follows its files. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https, { createServer, get, globalAgent } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import * as tls from 'node:tls';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { followDefaultCa, TlsFiles, type DefaultCa } from 'resilient-watcher/tls';
import * as undici from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { listen } from '../support/tls-clients.js';

interface DefaultCaCalls {
  getCACertificates(type: 'default' | 'bundled' | 'system'): string[];
  setDefaultCACertificates(certificates: readonly string[]): void;
}

const calls = tls as unknown as DefaultCaCalls;
const isSupported = 'setDefaultCACertificates' in tls;
const [one, two] = [new CertificateSigner({ name: 'one' }), new CertificateSigner({ name: 'two' })];
const both = `${one.certificate}${two.certificate}`;

interface Mounted {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly trust: (ca: string) => Promise<void>;
}

function mount(ca: string): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'trust'));
  volume.publish({ 'ca.pem': ca });
  const files = new TlsFiles({ ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const trust = async (bundle: string): Promise<void> => {
    volume.publish({ 'ca.pem': bundle });
    await files.check();
  };
  return { volume, files, trust };
}

interface SlowServer {
  readonly port: number;
  readonly slow: readonly (() => void)[];
}

async function startServer(
  signer: CertificateSigner,
  version: tls.SecureVersion = 'TLSv1.3',
): Promise<SlowServer> {
  const { chain: cert, key } = signer.issue({ dnsNames: ['localhost'] });
  const slow: (() => void)[] = [];
  const limits = { minVersion: version, maxVersion: version };
  const server = createServer({ cert, key, ...limits, keepAliveTimeout: 0 }, ({ url }, response) => {
    response.write('hel');
    if (url === '/slow') slow.push(() => response.end('lo'));
    else response.end('lo');
  });
  return { port: await listen(server), slow };
}

test.runIf(!isSupported)('an older Node.js is said to be one', async () => {
  const { files } = mount(both);
  await expect(followDefaultCa(files)).rejects.toMatchObject({
    code: 'ERR_TLS_UNSUPPORTED',
    message: expect.stringMatching(/needs 22\.19, or 24\.5, or later/) as string,
  });
});

describe.runIf(isSupported)('followDefaultCa()', () => {
  const initial = isSupported ? calls.getCACertificates('default') : [];
  const follow = async (files: TlsFiles): Promise<DefaultCa> => {
    const followed = await followDefaultCa(files);
    onTestFinished(async () => {
      await followed.close();
      globalAgent.destroy();
      calls.setDefaultCACertificates(initial);
    });
    return followed;
  };
  const ask = async (port: number, path = '/'): Promise<string> =>
    (await fetch(`https://localhost:${port}${path}`)).text();

  test('adds the bundle to the CAs of the system and of Node.js, and takes it away again', async () => {
    const { files, trust } = mount(both);
    await follow(files);
    const base = new Set(
      [...calls.getCACertificates('bundled'), ...calls.getCACertificates('system')].map(bodyOf),
    );
    const added = (): string[] =>
      calls
        .getCACertificates('default')
        .map(bodyOf)
        .filter((pem) => !base.has(pem));
    expect(added().sort()).toEqual([one, two].map(({ certificate }) => bodyOf(certificate)).sort());
    expect(calls.getCACertificates('default').length).toBe(base.size + 2);
    await trust(two.certificate);
    expect(added()).toEqual([bodyOf(two.certificate)]);
    // An empty one keeps the last good one.
    await trust('');
    expect(added()).toEqual([bodyOf(two.certificate)]);
  });

  test('follows several bundles; one that is no longer followed stays until another changes', async () => {
    const three = new CertificateSigner({ name: 'three' });
    const trusted = (): string[] => {
      const list = new Set(calls.getCACertificates('default').map(bodyOf));
      const signers = { one, two, three };
      return Object.entries(signers).flatMap(([name, { certificate }]) =>
        list.has(bodyOf(certificate)) ? [name] : [],
      );
    };
    const [ended, followed] = [mount(one.certificate), mount(two.certificate)];
    const first = await followDefaultCa(ended.files);
    await follow(followed.files);
    await first.close();
    expect(trusted()).toEqual(['one', 'two']);
    await ended.trust(three.certificate);
    expect(trusted()).toEqual(['one', 'two']);
    await followed.trust(`${two.certificate}${three.certificate}`);
    expect(trusted()).toEqual(['two', 'three']);
    await follow(ended.files);
    await followed.trust(two.certificate);
    expect(trusted()).toEqual(['two', 'three']);
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a removed CA ends the connections of the global agent, and none of its sessions is resumed (%s)',
    async (version) => {
      const { files, trust } = mount(both);
      await follow(files);
      const [leaving, staying] = [await startServer(one, version), await startServer(two, version)];
      // Without a look at the certificate, which takes it away from others.
      const request = async (port: number, path = '/'): Promise<{ socket: Socket; text: string }> => {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
          get(`https://localhost:${port}${path}`, resolve).on('error', reject);
        });
        const { socket } = response;
        return { socket, text: (await response.setEncoding('utf8').toArray()).join('') };
      };
      const [idle, trusted] = [await request(leaving.port), await request(staying.port)];
      const busy = request(leaving.port, '/slow');
      await expect.poll(() => leaving.slow.length).toBe(1);
      const ends = idle.socket.destroyed ? Promise.resolve() : once(idle.socket, 'close');
      await trust(two.certificate);
      leaving.slow[0]?.();
      expect((await busy).text).toBe('hello');
      await ends;
      await expect(request(leaving.port)).rejects.toThrow(/verify|self-signed/);
      const again = await request(staying.port);
      expect(again.text).toBe('hello');
      expect(again.socket).not.toBe(trusted.socket);
      // The servers keep their ticket keys.
      await trust(one.certificate);
      expect((await request(leaving.port)).text).toBe('hello');
      await expect(request(staying.port)).rejects.toThrow(/verify|self-signed/);
      await trust(both);
      expect((await request(staying.port)).text).toBe('hello');
    },
  );

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a removed CA ends the connections of fetch() (%s)',
    async (version) => {
      const { files, trust } = mount(both);
      await follow(files);
      const [leaving, staying] = [await startServer(one, version), await startServer(two, version)];
      expect([await ask(leaving.port), await ask(staying.port)]).toEqual(['hello', 'hello']);
      const busy = ask(leaving.port, '/slow');
      await expect.poll(() => leaving.slow.length).toBe(1);
      await trust(two.certificate);
      await expect(ask(leaving.port)).rejects.toThrow('fetch failed');
      leaving.slow[0]?.();
      expect(await busy).toBe('hello');
      await expect(ask(leaving.port)).rejects.toThrow('fetch failed');
      expect(await ask(staying.port)).toBe('hello');
      await trust(one.certificate);
      expect(await ask(leaving.port)).toBe('hello');
      await expect(ask(staying.port)).rejects.toThrow('fetch failed');
    },
  );

  test('the global agent that replaces another one has its settings, also those that were made later', async () => {
    const { files, trust } = mount(both);
    await follow(files);
    const old = https.globalAgent;
    onTestFinished(() => void (https.globalAgent = old));
    const own = new https.Agent({ keepAlive: true, maxSockets: 7, timeout: 5_000 });
    const onKeylog = vi.fn();
    const createConnection = (...args: never[]): unknown =>
      Reflect.apply(https.Agent.prototype.createConnection, https.globalAgent, args);
    Object.assign(own, { maxFreeSockets: 5, maxTotalSockets: 9, createConnection, note: 'a note' });
    own.on('keylog', onKeylog);
    https.globalAgent = own;
    syncBuiltinESMExports();
    const { port } = await startServer(two);
    const request = async (): Promise<string> => {
      const [response] = (await once(https.get(`https://localhost:${port}`), 'response')) as [
        IncomingMessage,
      ];
      return (await response.setEncoding('utf8').toArray()).join('');
    };
    expect(await request()).toBe('hello');
    await trust(two.certificate);
    expect(https.globalAgent).not.toBe(own);
    expect(https.globalAgent).toMatchObject({
      keepAlive: true,
      maxSockets: 7,
      maxFreeSockets: 5,
      maxTotalSockets: 9,
      createConnection,
      note: 'a note',
      totalSocketCount: 0,
      options: { timeout: 5_000 },
    });
    onKeylog.mockClear();
    expect(await request()).toBe('hello');
    expect(onKeylog).toHaveBeenCalled();
  });

  test('a request that waits in the global agent resumes no session of a removed CA', async () => {
    const { files, trust } = mount(both);
    await follow(files);
    const old = https.globalAgent;
    onTestFinished(() => void (https.globalAgent = old));
    https.globalAgent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    syncBuiltinESMExports();
    const { port, slow } = await startServer(one);
    const request = async (path: string): Promise<string> => {
      const sent = https.get(`https://localhost:${port}${path}`);
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return (await response.setEncoding('utf8').toArray()).join('');
    };
    expect(await request('/')).toBe('hello');
    const busy = request('/slow');
    await expect.poll(() => slow.length).toBe(1);
    const waiting = request('/').catch((error: unknown) => String(error));
    await trust(two.certificate);
    slow[0]?.();
    expect(await busy).toBe('hello');
    expect(await waiting).toMatch(/verify|self-signed/);
  });

  const globals = globalThis as unknown as Record<symbol, undici.Dispatcher | undefined>;
  const [currentKey, legacyKey] = [2, 1].map((version) =>
    Symbol.for(`undici.globalDispatcher.${version}`),
  ) as [symbol, symbol];

  /** Sets the global dispatchers until the test is over. */
  function setDispatchers(current: undici.Dispatcher, legacy = current): void {
    const before = [globals[currentKey], globals[legacyKey]];
    onTestFinished(() => void ([globals[currentKey], globals[legacyKey]] = before));
    [globals[currentKey], globals[legacyKey]] = [current, legacy];
  }

  test.each<[string, (agent: undici.Agent) => undici.Agent]>([
    [
      'cannot be made again',
      () => {
        class Agent extends undici.Agent {
          constructor(options?: undici.Agent.Options) {
            if (!options) throw new Error('no options');
            super(options);
          }
        }
        return new Agent({});
      },
    ],
    ['fails to close', (agent) => Object.assign(agent, { close: () => Promise.reject(new Error('no')) })],
    [
      'throws when it is closed',
      (agent) =>
        Object.assign(agent, {
          close() {
            throw new Error('no');
          },
        }),
    ],
  ])('a global dispatcher that %s keeps no other pool from being replaced', async (how, change) => {
    const { files, trust } = mount(both);
    const followed = await follow(files);
    const errors: Error[] = [];
    followed.on('error', (error) => void errors.push(error));
    setDispatchers(change(new undici.Agent()));
    const { port } = await startServer(one);
    const request = async (): Promise<number | undefined> => {
      const [response] = (await once(https.get(`https://localhost:${port}`), 'response')) as [
        IncomingMessage,
      ];
      response.resume();
      await once(response, 'end');
      return response.statusCode;
    };
    expect(await request()).toBe(200);
    await trust(two.certificate);
    await expect(request()).rejects.toThrow(/verify|self-signed/);
    const isKept = how === 'cannot be made again';
    expect(errors.map(({ message }) => message)).toEqual(
      isKept ? [expect.stringContaining('cannot be replaced by a new one') as string] : [],
    );
  });

  test('the dispatcher of fetch() that undici 8 wraps is replaced, too', async () => {
    class Dispatcher1Wrapper extends undici.Dispatcher {
      readonly wrapped: undici.Dispatcher;
      constructor(wrapped: undici.Dispatcher) {
        super();
        this.wrapped = wrapped;
      }
      override dispatch(...args: Parameters<undici.Dispatcher['dispatch']>): boolean {
        return this.wrapped.dispatch(...args);
      }
    }
    const { files, trust } = mount(both);
    await follow(files);
    const agent = new undici.Agent();
    setDispatchers(agent, new Dispatcher1Wrapper(agent));
    const [leaving, staying] = [await startServer(one), await startServer(two)];
    const ask = async (port: number): Promise<string> => {
      const dispatcher = globals[legacyKey];
      const { body } = await undici.request(`https://localhost:${port}`, dispatcher && { dispatcher });
      return body.text();
    };
    expect([await ask(leaving.port), await ask(staying.port)]).toEqual(['hello', 'hello']);
    await trust(two.certificate);
    expect(await ask(staying.port)).toBe('hello');
    await expect(ask(leaving.port)).rejects.toThrow(/verify|self-signed/);
  });

  test('files without a CA bundle are refused', async () => {
    const { volume } = mount(both);
    volume.publish({ 'bundle.pem': one.issue().bundle });
    const files = new TlsFiles(volume.path('bundle.pem'));
    onTestFinished(() => files.close());
    await expect(followDefaultCa(files)).rejects.toMatchObject({ code: 'ERR_TLS_CA' });
  });
});

function bodyOf(pem: string): string {
  return pem.replace(/\s+/g, '');
}

test('resilient-watcher/trust does nothing, and does not warn, while its variable is empty', async () => {
  vi.stubEnv('RESILIENT_WATCHER_CA', '');
  onTestFinished(() => void vi.unstubAllEnvs());
  const warn = vi.spyOn(process, 'emitWarning');
  onTestFinished(() => warn.mockRestore());
  const { environmentCa } = await import('resilient-watcher/trust');
  expect(environmentCa).toBeUndefined();
  expect(warn).not.toHaveBeenCalled();
});
