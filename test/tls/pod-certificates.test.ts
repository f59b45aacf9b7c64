/** Pod certificates and trust bundles rotate under load: each handshake that should pass does, and no other. */
import type { Agent } from 'node:https';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';

import {
  CertificateSigner,
  podCertificateFiles,
  trustBundleFile,
  type IssuedCertificate,
} from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

import { createMesh, serveHello } from '../support/mesh.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, keepDoing, repeatable } from '../support/tls-clients.js';

test.each(['rename', 'remove'] as const)(
  'rotations of key, chain and root (%s) under load: none is refused that should pass, none accepted that should not',
  async (swap) => {
    const { server, client, rotate } = await createMesh(swap);
    const { port } = await serveHello(server);

    const agents = [true, false].map((keepAlive) => httpsAgent(client, { keepAlive }));
    const dispatcher = await undiciDispatcher(client, { connect: { servername: 'localhost' } });
    onTestFinished(async () => {
      agents.forEach((agent) => agent.destroy());
      await dispatcher.destroy();
    });
    const failures: unknown[] = [];
    const noted = (work: () => Promise<string>) =>
      keepDoing(() => work().catch((error: unknown) => void failures.push(error)));
    const load = [
      ...agents.map((agent) =>
        noted(() => repeatable(async () => (await askHttps({ port, ca: undefined as never }, agent)).text)),
      ),
      noted(() =>
        repeatable(async () => (await request(`https://127.0.0.1:${port}`, { dispatcher })).body.text()),
      ),
    ];

    const strangers: string[] = [];
    await rotate(load, async (leaving, trusted) => {
      const session = await sessionOf(port, leaving, trusted);
      return async () => {
        for (const resumed of [undefined, session])
          strangers.push(await answerTo(port, leaving, trusted, resumed));
      };
    });
    const answers = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(failures).toEqual([]);
    expect(new Set(answers)).toEqual(new Set(['hello']));
    expect(strangers.length).toBeGreaterThan(0);
    expect(new Set(strangers)).toEqual(new Set(['']));
  },
);

test('a trust bundle in another order makes no new connection', async () => {
  const roots = Array.from({ length: 5 }, (_, index) => new CertificateSigner({ name: `root ${index}` }));
  const [root = new CertificateSigner()] = roots;
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const issued = root.issue({ dnsNames: ['localhost'] });
  const publish = (seed: number) =>
    volume.publish({
      ...podCertificateFiles(issued, { credentialBundlePath: 'bundle.pem' }),
      'ca.pem': trustBundleFile(
        roots.map(({ certificate }) => certificate),
        { seed },
      ),
    });
  publish(0);
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const { served, port } = await serveHello(files);
  const agent: Agent = httpsAgent(files, { keepAlive: true });
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<TLSSocket> =>
    (await askHttps({ port, ca: undefined as never }, agent)).socket;
  const socket = await ask();
  for (let seed = 1; seed <= 20; seed += 1) {
    publish(seed);
    await files.check();
    expect(await ask()).toBe(socket);
  }
  expect([files.status().changes, served.status().changes]).toEqual([1, 1]);
});

function connected(
  port: number,
  { chain: cert, key }: IssuedCertificate,
  ca: string,
  session?: Buffer,
): TLSSocket {
  const options = { port, host: '127.0.0.1', servername: 'localhost', cert, key, ca };
  return connect({ ...options, ...(session && { session }) });
}

/** A session that the server would resume. */
async function sessionOf(port: number, issued: IssuedCertificate, ca: string): Promise<Buffer> {
  const socket = connected(port, issued, ca);
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      socket
        .once('session', resolve)
        .once('error', reject)
        .once('close', () => reject(new Error('there was no session')));
      socket.resume().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    });
  } finally {
    socket.destroy();
  }
}

/** What the server sends to a client; nothing if it refuses it. */
async function answerTo(
  port: number,
  issued: IssuedCertificate,
  ca: string,
  session?: Buffer,
): Promise<string> {
  const socket = connected(port, issued, ca, session);
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk))).on('error', () => {});
  socket.write('GET / HTTP/1.0\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}
