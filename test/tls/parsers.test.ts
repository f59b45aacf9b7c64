/** Files of another format, which the option `parse` turns into PEM. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { TlsFiles, type TlsError, type TlsParser, type TlsPem } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { realIo } from '../support/real-io.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const HOUR_MS = 3_600_000;
const root = new CertificateSigner({ name: 'root' });
const [first, second] = [setOf(root), setOf(root)];

function setOf(issuer: CertificateSigner, lifetimeMs?: number): Required<Omit<TlsPem, 'crl'>> {
  const { chain, key } = issuer.issue({ dnsNames: ['localhost'], lifetimeMs });
  return { cert: chain, key, ca: issuer.certificate };
}

const fromJson: TlsParser = ({ set }) => JSON.parse(String(set)) as TlsPem;

interface Mounted {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly backend: ScriptedBackend;
  readonly clock: FakeClock;
  readonly events: readonly string[];
}

/** A volume with these files, each named in the `TlsFiles`. */
function mount(contents: Record<string, string>, parse: TlsParser): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(contents);
  const paths = Object.fromEntries(Object.keys(contents).map((name) => [name, volume.path(name)]));
  const clock = new FakeClock(Date.now());
  const backend = new ScriptedBackend();
  const files = new TlsFiles(paths, { parse, backend, resyncIntervalMs: 0, clock });
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  onTestFinished(() => files.close());
  return { volume, files, backend, clock, events };
}

const text = (set: TlsPem): Record<string, string> => ({ set: JSON.stringify(set) });

test('a set that a parser returns is used, compared and replaced like any other', async () => {
  const { volume, files, events } = mount(text(first), fromJson);
  const { cert, key, ca } = await files.get();
  expect([cert, key, ca].map(String)).toEqual([first.cert, first.key, first.ca]);
  volume.publish({ set: `${JSON.stringify(first)}\n` });
  await files.check();
  volume.publish(text({ ...second, key: first.key }));
  await files.check();
  volume.publish(text(second));
  await files.check();
  expect(events).toEqual(['change', 'ERR_TLS_MISMATCH', 'change']);
  expect(String(files.current?.cert)).toBe(second.cert);
});

test('a parser receives the files by name, copied, and the passphrase without its line break', async () => {
  const seen = vi.fn<TlsParser>(({ keystore }) => {
    keystore?.fill(0);
    return Promise.resolve(first);
  });
  const { files } = mount({ keystore: 'bytes', passphrase: 'pä$$\r\n' }, seen);
  await files.get();
  const [given, { passphrase, signal }] = seen.mock.calls[0] ?? [{}, {} as never];
  expect(Object.keys(given)).toEqual(['keystore', 'passphrase']);
  expect([passphrase, signal.aborted]).toEqual(['pä$$', false]);
});

test('a directory is given with all its files, and a file under its own name', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'keystore.p12'), 'one');
  writeFileSync(join(directory, 'note'), 'two');
  for (const path of [directory, join(directory, 'keystore.p12')]) {
    const seen: string[] = [];
    const parse: TlsParser = (given) => {
      seen.push(...Object.keys(given).sort());
      return first;
    };
    const files = new TlsFiles(path, { parse });
    onTestFinished(() => files.close());
    await files.get();
    expect(seen).toEqual(path === directory ? ['keystore.p12', 'note'] : ['keystore.p12']);
  }
});

test('a key that a parser returns may be protected by the passphrase', async () => {
  const { createPrivateKey } = await import('node:crypto');
  const key = createPrivateKey(String(first.key)).export({
    ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
  });
  const { files } = mount({ passphrase: 'secret' }, () => ({ cert: first.cert, key: key as string }));
  expect(String((await files.get()).key)).toBe(first.key);
});

test('a parser may return only a CA bundle, and bytes instead of text', async () => {
  const { files } = mount({ set: '' }, () => ({ ca: new TextEncoder().encode(root.certificate) }));
  expect(String((await files.get()).ca)).toBe(root.certificate);
});

describe('is rejected, and the last good set stays:', () => {
  const password = 'hunter2-hunter2';
  test.each<[name: string, parse: () => unknown, says: RegExp, code?: string]>([
    [
      'what a parser throws',
      () => raise(new Error(`wrong ${password}`)),
      /"parse" failed: wrong \[redacted\]/,
    ],
    ['what it rejects with', () => Promise.reject(new Error(`no ${password}`)), /failed: no \[redacted\]/],
    ['something that is no error', () => raise({ password }), /failed: an object/],
    ['undefined', () => undefined, /must return \{ cert, key, ca \} in PEM, got undefined/],
    ['text', () => 'PEM', /must return \{ cert, key, ca \} in PEM, got "PEM"/],
    ['nothing', () => ({}), /must return cert and key, .+; got none/],
    ['half a pair', () => ({ cert: second.cert, ca: second.ca }), /; got cert, ca/],
    ['a key that is no text', () => ({ ...second, key: 7 }), /must return "key" in PEM/],
    ['a certificate that is none', () => ({ ...second, cert: 'x' }), /"cert as parsed from /, 'ERR_TLS_PEM'],
  ])('%s', async (_name, parse, says, code = 'ERR_TLS_PARSE') => {
    let isBad = false;
    const parser = (() => (isBad ? parse() : first)) as TlsParser;
    const { volume, files, events } = mount({ set: 'one', passphrase: password }, parser);
    await files.start();
    isBad = true;
    volume.publish({ set: 'two', passphrase: password });
    await files.check();
    expect(events).toEqual(['change', code]);
    expect(files.status().rejected?.message).toMatch(says);
    expect(files.status().rejected?.message).toContain(volume.directory);
    expect(inspect(files, { depth: 9 }) + JSON.stringify(files)).not.toContain(password);
    expect(String((await files.get()).cert)).toBe(first.cert);
  });

  test('a parser that does not end in ten seconds, whose signal aborts', async () => {
    const signals: AbortSignal[] = [];
    const { files, clock, events } = mount({ set: 'one' }, (_, { signal }) => {
      signals.push(signal);
      return new Promise<TlsPem>(() => {});
    });
    const got = files.get();
    got.catch(() => {});
    await expect.poll(() => signals).toHaveLength(1);
    await clock.advance(10_000);
    await expect(got).rejects.toMatchObject({
      code: 'ERR_TLS_UNAVAILABLE',
      cause: { code: 'ERR_TLS_PARSE' },
    });
    expect(events).toEqual(['ERR_TLS_PARSE']);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });
});

test('close() aborts a parser and waits for none that ignores it', async () => {
  const begun = new Outcome<AbortSignal>();
  const { files } = mount({ set: 'one' }, (_, { signal }) => {
    begun.resolve(signal);
    return new Promise<TlsPem>(() => {});
  });
  const got = files.get();
  got.catch(() => {});
  const signal = await begun.promise;
  await files.close();
  expect(signal.aborted).toBe(true);
  await expect(got).rejects.toMatchObject({ code: 'ERR_CLOSED' });
});

test('one parser runs at a time; what came meanwhile is parsed next, and only the newest of it', async () => {
  const answers: Outcome<TlsPem>[] = [];
  const inputs: string[] = [];
  const { volume, files, events } = mount({ set: '1' }, ({ set }) => {
    inputs.push(String(set));
    const answer = new Outcome<TlsPem>();
    answers.push(answer);
    return answer.promise;
  });
  const started = files.start();
  await expect.poll(() => answers).toHaveLength(1);
  volume.publish({ set: '2' });
  const checked = files.check();
  answers[0]?.resolve(first);
  await expect.poll(() => answers).toHaveLength(2);
  answers[1]?.resolve(second);
  await Promise.all([started, checked]);
  expect(inputs).toEqual(['1', '2']);
  expect(events).toEqual(['change', 'change']);
  expect(String(files.current?.cert)).toBe(second.cert);
});

test('start(), get() and check() end although the files change again whenever they are parsed', async () => {
  let state = 0;
  const { volume, files, backend } = mount({ set: '0' }, async () => {
    state += 1;
    volume.publish({ set: String(state) });
    await realIo();
    backend.hint();
    await realIo();
    return state % 2 === 1 ? first : second;
  });
  await files.start();
  const { cert } = await files.get();
  expect([first.cert, second.cert]).toContain(String(cert));
  const before = state;
  await files.check();
  expect(state).toBeGreaterThan(before);
});

test('a parser is called once for each state of the files, also if the set is not valid yet', async () => {
  const { chain, key } = root.issue({ dnsNames: ['localhost'], notBefore: Date.now() + HOUR_MS });
  const parse = vi.fn<TlsParser>(() => ({ cert: chain, key }));
  const { files, clock, events } = mount({ set: 'one' }, parse);
  await files.start();
  expect(events).toEqual(['ERR_TLS_NOT_YET_VALID']);
  await clock.advance(2 * HOUR_MS);
  expect(events).toEqual(['ERR_TLS_NOT_YET_VALID', 'change']);
  expect(parse.mock.calls).toHaveLength(1);
});

test('a keystore and its passphrase that are renewed one after the other are no rejection', async () => {
  const directory = temporaryDirectory();
  const [set, passphrase] = [join(directory, 'set'), join(directory, 'passphrase')];
  const write = (path: string, contents: string): void => writeFileSync(path, contents);
  write(set, JSON.stringify({ ...first, secret: 'one' }));
  write(passphrase, 'one');
  const parse: TlsParser = (files, parsing) => {
    const { secret, ...pem } = JSON.parse(String(files['set'])) as TlsPem & { readonly secret: string };
    return secret === parsing.passphrase ? pem : raise(new Error('wrong passphrase'));
  };
  const backend = new ScriptedBackend();
  const clock = new FakeClock(Date.now());
  const options = { parse, backend, clock, resyncIntervalMs: 0, settleMs: 0 };
  const files = new TlsFiles({ set, passphrase }, options);
  onTestFinished(() => files.close());
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  await files.start();
  write(passphrase, 'two');
  backend.hint();
  await clock.advance(150);
  write(set, JSON.stringify({ ...second, secret: 'two' }));
  backend.hint();
  await clock.advance(1_000);
  expect(events).toEqual(['change', 'change']);
});

test('a file that is named and missing is said before the parser is called; wrong paths are refused', async () => {
  const parse = vi.fn<TlsParser>(() => first);
  const files = new TlsFiles({ set: join(temporaryDirectory(), 'none') }, { parse });
  onTestFinished(() => files.close());
  await files.start();
  expect(files.status().rejected?.code).toBe('ERR_TLS_MISSING');
  expect(parse.mock.calls).toEqual([]);
  expect(() => new TlsFiles({}, { parse })).toThrow(/expected paths by name, got none/);
  expect(() => new TlsFiles('/a', { parse: 'x' as never })).toThrow(/option "parse" must be a function/);
  expect(() => new TlsFiles({ pfx: '/a' } as never)).toThrow(/unknown path "pfx"; .+ option "parse"/);
});

function raise(error: unknown): never {
  throw error;
}
