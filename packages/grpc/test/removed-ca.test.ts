/** A CA is removed: connections made before end, do not come back by a resumed session, and no call of others is lost. */
import { once } from 'node:events';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

import { status } from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { rounds } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { keepDoing, listen, repeatable } from '../../../test/support/tls-clients.js';
import { EchoClient, startGrpc } from './echo.js';

/** Before 22.17, Node.js does not tell which calls a connection has in flight. */
const KNOWS_STREAMS = Number(process.versions.node.split('.')[0]) >= 22;
const root = new CertificateSigner({ name: 'root' });
const leaving = new CertificateSigner({ name: 'leaving' });
const own = root.issue({ dnsNames: ['localhost'] });
const client = root.issue({ commonName: 'client' });
const both = `${root.certificate}${leaving.certificate}`;

interface Mounted {
  readonly files: TlsFiles;
  readonly publish: (issued: IssuedCertificate, ca?: string) => Promise<void>;
  readonly removeCa: () => Promise<void>;
}

function mount(issued: IssuedCertificate): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const write = ({ chain, key }: IssuedCertificate, ca = both): void =>
    void volume.publish({ 'tls.crt': chain, 'tls.key': key, 'ca.crt': ca });
  write(issued);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const publish: Mounted['publish'] = async (next, ca) => {
    write(next, ca);
    await files.check();
  };
  return { files, publish, removeCa: () => publish(issued, root.certificate) };
}

/** Without a client certificate the handshake fails, so each connection presents one. */
function dial(port: number, options: ConnectionOptions): TLSSocket {
  const identity = { ca: root.certificate, cert: client.chain, key: client.key };
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...identity, ...options });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => {});
}

const H2 = { ALPNProtocols: ['h2'] };
/** The preface of HTTP/2 and empty settings. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a server resumes no session from before (%s)',
  async (version) => {
    const { files, removeCa } = mount(own);
    const port = await startGrpc(await grpcServerCredentials(files, { requireClientCertificate: true }));
    const limits = { minVersion: version, maxVersion: version };
    const leaver = leaving.issue({ commonName: 'leaver' });
    const first = dial(port, { ...H2, ...limits, cert: leaver.chain, key: leaver.key });
    let session: Buffer | undefined;
    first.on('session', (given: Buffer) => (session = given));
    first.write(PREFACE);
    await once(first, 'data');
    await expect.poll(() => session).toBeDefined();
    // Without its certificate: what admits it is the session alone.
    const again = (): TLSSocket => {
      const socket = dial(port, { ...H2, ...limits, cert: undefined, key: undefined, session });
      socket.write(PREFACE);
      return socket;
    };
    await once(again(), 'data');
    await removeCa();
    const refused = again();
    let said = 0;
    refused.on('data', ({ length }: Buffer) => (said += length));
    await new Promise((resolve) => refused.once('close', resolve));
    expect(said).toBe(0);
  },
);

test('a server admits no client whose handshake began before its CA was removed, if nobody had called it yet', async () => {
  const onServer = mount(own);
  const port = await startGrpc(
    await grpcServerCredentials(onServer.files, { requireClientCertificate: true }),
  );
  const caller = new EchoClient(port, await grpcChannelCredentials(mount(client).files));
  const tcp = connectTcp(port, '127.0.0.1');
  await once(tcp, 'connect');
  await caller.connect(); // the server accepts one after the other
  await onServer.removeCa();
  await expect(caller.echo('after')).resolves.toBe('after');
  const leaver = leaving.issue({ commonName: 'leaver' });
  const late = dial(port, { socket: tcp, ...H2, cert: leaver.chain, key: leaver.key });
  let said = 0;
  late.on('data', ({ length }: Buffer) => (said += length));
  await new Promise((resolve) => late.once('close', resolve));
  expect(said).toBe(0);
});

test.runIf(KNOWS_STREAMS)('a channel connects again with a new certificate', async () => {
  const { files, publish } = mount(client);
  const server = await grpcServerCredentials(mount(own).files, { requireClientCertificate: true });
  const target = await startGrpc(server);
  let connections = 0;
  const front = createTcpServer((socket) => {
    connections += 1;
    const toServer = connectTcp(target).on('error', () => {});
    socket
      .on('error', () => {})
      .pipe(toServer)
      .pipe(socket);
  });
  const caller = new EchoClient(await listen(front), await grpcChannelCredentials(files));
  expect([await caller.echo('first'), await caller.echo('second'), connections]).toEqual([
    'first',
    'second',
    1,
  ]);
  await publish(root.issue({ commonName: 'renewed' }));
  expect([await caller.echo('third'), connections]).toEqual(['third', 2]);
});

test.each<[side: string, change: (server: Mounted, client: Mounted, ca: string) => Promise<void>]>([
  ['server', (server, _client, ca) => server.publish(own, ca)],
  ['client', (_server, { publish }, ca) => publish(root.issue({ commonName: 'client' }), ca)],
])(
  'no call of many trusted clients is lost when a CA is removed repeatedly from the %s',
  async (_side, change) => {
    const [onServer, onClient] = [mount(own), mount(client)];
    const port = await startGrpc(
      await grpcServerCredentials(onServer.files, { requireClientCertificate: true }),
    );
    const credentials = await grpcChannelCredentials(onClient.files);
    const failures: unknown[] = [];
    const load = Array.from({ length: rounds(4, 17) }, () => {
      const caller = new EchoClient(port, credentials);
      const call = (): Promise<string> => caller.echo('hello');
      const ask = KNOWS_STREAMS ? call : () => repeatable(call, [status.UNAVAILABLE]);
      return keepDoing(() => ask().catch((error: unknown) => void failures.push(error)));
    });
    /** Until each client has connected again: one whose handshake fails makes no call for a second. */
    const everyoneServed = async (): Promise<void> => {
      const before = load.map(({ results }) => results.length);
      const isServed = () => load.every(({ results }, index) => results.length > (before[index] ?? 0) + 1);
      await expect.poll(isServed).toBe(true);
    };
    for (let removal = 0; removal < rounds(2, 10); removal += 1) {
      for (const ca of [root.certificate, both]) {
        await everyoneServed();
        await change(onServer, onClient, ca);
      }
    }
    await everyoneServed();
    const answers = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(failures).toEqual([]);
    expect(new Set(answers)).toEqual(new Set(['hello']));
  },
);
