/** `serveTls` and `sniCallback`: what a server keeps when its certificate changes, and when connections end. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { connect, createServer as createTlsServer, type TLSSocket, type ConnectionOptions } from 'node:tls';

import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, sniCallback, TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { listen } from '../support/tls-clients.js';
import { fingerprintOf, secretOf } from '../support/tls-sets.js';

const authority = createAuthority('authority');
const stranger = createAuthority('stranger');
const [first, second] = [createServerPair(authority), createServerPair(authority)];
const ca = authority.cert;

function openFiles(): { volume: KubeletVolume; files: TlsFiles } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(secretOf(first));
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  return { volume, files };
}

/** A connection that has passed its handshake; rejects when it does not. */
async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

/** All that the server sends before the connection ends, in whatever way. */
async function answerTo(socket: TLSSocket): Promise<string> {
  let answer = '';
  socket.on('data', (chunk) => (answer += String(chunk))).on('error', () => {});
  socket.write('GET / HTTP/1.0\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}

test('a CA bundle without a certificate is refused, unless the server has one of its own', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish({ 'ca.crt': ca });
  const files = new TlsFiles({ ca: volume.path('ca.crt') });
  onTestFinished(() => files.close());
  await expect(serveTls(createServer(), files)).rejects.toThrow(
    /^serveTls: neither .*ca\.crt nor the server has a certificate; name cert and key, or a directory with both, or give them to createServer\(\)$/,
  );

  const server = createServer({ ...first, requestCert: true });
  await serveTls(server, files);
  const port = await listen(server);
  await expect(handshake(port, { ...second })).resolves.toMatchObject({ authorized: true });
  volume.publish({ 'ca.crt': ca + stranger.cert });
  await files.check();
  await expect(handshake(port, { ...second })).resolves.toMatchObject({ authorized: true });
});

test('options of createServer() are kept: TLS versions and the rules for client certificates', async () => {
  const { volume, files } = openFiles();
  const server = createServer(
    { minVersion: 'TLSv1.3', ca, requestCert: true, rejectUnauthorized: true },
    (_request, response) => response.end('hello'),
  );
  await serveTls(server, files);
  const port = await listen(server);
  volume.publish(secretOf(second, stranger.cert));
  await files.check();

  await expect(handshake(port, { maxVersion: 'TLSv1.2', ...second })).rejects.toThrow(/version/);
  await expect(handshake(port, { ...second })).resolves.toMatchObject({ authorized: true });
  const unknown = createServerPair(stranger);
  expect(await answerTo(await handshake(port, { ...unknown }))).toBe('');
  expect(await answerTo(await handshake(port, { ...second }))).toContain('hello');
});

test('every option that this Node.js takes from createServer() is kept', async () => {
  const { files } = openFiles();
  const values: Readonly<Record<string, unknown>> = {
    ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256',
    ecdhCurve: 'P-256',
    honorCipherOrder: false,
    maxVersion: 'TLSv1.3',
    minVersion: 'TLSv1.2',
    secureOptions: 1,
    sessionIdContext: 'shop',
    sessionTimeout: 60,
    sigalgs: 'ECDSA+SHA256',
    ticketKeys: Buffer.alloc(48, 1),
    certificateCompression: ['zlib'],
  };
  const server = createServer(values);
  const optionsOf = () =>
    Object.fromEntries(
      Object.keys(values).map((name) => [name, (server as unknown as Record<string, unknown>)[name]]),
    );
  const given = optionsOf();
  const served = await serveTls(server, files);
  onTestFinished(() => served.close());
  expect(optionsOf()).toEqual(given);
  expect(given).toMatchObject({ sessionIdContext: 'shop', honorCipherOrder: false });
});

test('a server that asks clients for certificates is refused without a CA bundle: the roots of Node.js are not for clients', async () => {
  const { volume, files } = openFiles();
  volume.publish(secretOf(first, '')); // of cert-manager, before there is a CA
  const server = createServer({ requestCert: true });
  await expect(serveTls(server, files)).rejects.toMatchObject({ code: 'ERR_TLS_CA' });
  volume.publish(secretOf(first, stranger.cert));
  await files.check();
  const served = await serveTls(server, files);
  await served.close();
});

test('without a usable certificate serveTls() rejects, and the server keeps its own', async () => {
  const { volume, files } = openFiles();
  volume.publish(secretOf({ cert: first.cert, key: second.key }));
  const server = createServer({ ...second });
  const listeners = (): number => server.listenerCount('request') + server.listenerCount('secureConnection');
  const before = listeners();
  await expect(serveTls(server, files, { drainMs: 0 })).rejects.toMatchObject({
    code: 'ERR_TLS_UNAVAILABLE',
  });
  expect([listeners(), files.listenerCount('change')]).toEqual([before, 0]);
  const port = await listen(server);
  const socket = await handshake(port);
  expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(fingerprintOf(second));
});

test('a closed server or ServedTls no longer follows its files', async () => {
  const { files } = openFiles();
  const server = createServer();
  const served = await serveTls(server, files);
  expect(files.listenerCount('change')).toBe(1);
  await listen(server);
  server.close();
  await once(server, 'close');
  expect(served.state).toBe('closed');
  expect(files.listenerCount('change')).toBe(0);
  expect(JSON.stringify(served)).toContain(fingerprintOf(first));
});

test('a server that is given to serveTls() again has the CA bundle of the new files, not that of the first', async () => {
  const { volume, files } = openFiles();
  volume.publish({ ...secretOf(first), 'ca.crt': ca });
  await files.check();
  const server = createTlsServer({ requestCert: true });
  const served = await serveTls(server, files);
  await served.close();
  volume.publish({ ...secretOf(first), 'ca.crt': stranger.cert });
  await files.check();
  const again = await serveTls(server, files);
  onTestFinished(() => again.close());
  const port = await listen(server);
  const visit = async (issuer: typeof stranger): Promise<string> =>
    answerTo(await handshake(port, { ...createServerPair(issuer), maxVersion: 'TLSv1.2' }));
  server.on('secureConnection', (socket: TLSSocket) => socket.end('hello'));
  await expect(visit(stranger)).resolves.toBe('hello');
  await expect(visit(authority)).rejects.toThrow();
});

test('each server name gets the certificate of its files, and other names that of the server', async () => {
  const directory = temporaryDirectory();
  const openPair = (name: string): { files: TlsFiles; publish: () => Promise<string> } => {
    const volume = new KubeletVolume(join(directory, name.replace('*', 'any')));
    const files = new TlsFiles(volume.directory);
    onTestFinished(() => files.close());
    const publish = async (): Promise<string> => {
      const pair = createServerPair(authority, { name });
      volume.publish(secretOf(pair));
      await files.check();
      return fingerprintOf(pair);
    };
    return { files, publish };
  };
  const exact = openPair('shop.example.com');
  const wildcard = openPair('*.example.com');
  const later = openPair('later.example.org');
  const { files } = openFiles();
  const hosts = {
    'shop.example.com': exact.files,
    '*.EXAMPLE.com': wildcard.files,
    'later.example.org': later.files,
  };
  const server = createServer({ SNICallback: sniCallback(hosts) });
  await serveTls(server, files);
  const port = await listen(server);
  const shown = async (servername: string): Promise<string | undefined> => {
    const socket = await handshake(port, { servername, checkServerIdentity: () => undefined });
    return socket.getPeerX509Certificate()?.fingerprint256;
  };
  await later.files.start();
  await expect(shown('later.example.org')).rejects.toThrow();
  for (let rotation = 0; rotation < 3; rotation += 1) {
    const [one, any] = [await exact.publish(), await wildcard.publish()];
    expect(await shown('SHOP.example.com')).toBe(one);
    expect(await shown('other.example.com')).toBe(any);
    expect(await shown('a.b.example.com')).toBe(fingerprintOf(first));
    expect(await shown('localhost')).toBe(fingerprintOf(first));
  }
  const published = await later.publish();
  expect(await shown('later.example.org')).toBe(published);
});

test.each([
  ['a server that is none', TypeError, () => serveTls({} as never, new TlsFiles('/tls')), /server must be/],
  [
    'a negative time',
    RangeError,
    () => serveTls(createServer(), new TlsFiles('/tls'), { drainMs: -1 }),
    /drainMs/,
  ],
  ['no hosts', TypeError, () => Promise.resolve().then(() => sniCallback(undefined as never)), /sniCallback/],
])('%s is refused', async (_name, type, call, message) => {
  await expect(call()).rejects.toThrow(type);
  await expect(call()).rejects.toThrow(message);
});
