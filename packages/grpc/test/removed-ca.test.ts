/** A CA is removed: connections made before end, do not come back by a resumed session, and no call of others is lost. */
import { once } from 'node:events';
import { connect as connectTcp, createServer as createTcpServer } from 'node:net';
import type { TLSSocket } from 'node:tls';

import { status } from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { expect, test } from 'vitest';

import {
  both,
  client,
  dial,
  H2,
  leaving,
  mount,
  own,
  PREFACE,
  root,
  type Mounted,
} from '../../../test/support/leaving-ca.js';
import { rounds } from '../../../test/support/rounds.js';
import { keepDoing, listen, repeatable } from '../../../test/support/tls-clients.js';
import { EchoClient, startGrpc } from './echo.js';

/** Before 22.17, Node.js does not tell which calls a connection has in flight. */
const KNOWS_STREAMS = Number(process.versions.node.split('.')[0]) >= 22;

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
  await publish(root.issue({ commonName: 'renewed' }), both);
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
