/** Real calls while certificates rotate, beside requests of https with the same files: none fails, nothing open is dropped. */
import { createServer } from 'node:https';
import { join } from 'node:path';

import * as grpc from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { KubeletVolume } from 'resilient-watcher/testing';
import { httpsAgent, serveTls, TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createMesh, serveHello } from '../../../test/support/mesh.js';
import { ca, pairAt, rotatingPair } from '../../../test/support/rotating-pair.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { askHttps, keepDoing, listen, repeatable } from '../../../test/support/tls-clients.js';
import { secretOf } from '../../../test/support/tls-sets.js';
import { EchoClient, startGrpc } from './echo.js';

/** Before 22.17, Node.js does not tell which calls a connection has in flight. */
const KNOWS_STREAMS = Number(process.versions.node.split('.')[0]) >= 22;

test.each(['rename', 'remove'] as const)(
  'rotations (%s) under load on gRPC and https: no handshake fails and no connection is lost',
  async (swap) => {
    const { files, fingerprints, rotate } = rotatingPair(swap);
    const https = createServer((_request, response) => response.end('hello'));
    await serveTls(https, files);
    const port = await listen(https);
    const grpcPort = await startGrpc(await grpcServerCredentials(files));
    const channel = grpc.credentials.createSsl(Buffer.from(ca));
    const old = new EchoClient(grpcPort, channel);
    await old.echo('first');

    const known = new Set<string | undefined>(fingerprints);
    const load = keepDoing(async () => {
      const client = new EchoClient(grpcPort, channel);
      expect(await client.echo('new')).toBe('new');
      client.close();
      return (await askHttps({ port, ca })).fingerprint;
    });
    const { changes, rejections } = await rotate([load], known, async () => {
      expect(await old.echo('again')).toBe('again');
    });
    expect(new Set(await load.stop())).toEqual(known);
    expect(files.status()).toMatchObject({ changes, rejections, rejected: null });
  },
);

test.each(['rename', 'remove'] as const)(
  'rotations of key, chain and root (%s) under load on gRPC and https: no call is refused that should pass',
  async (swap) => {
    const { server, client, rotate } = await createMesh(swap);
    const { port } = await serveHello(server);
    const agent = httpsAgent(client, { keepAlive: true });
    onTestFinished(() => agent.destroy());
    const grpcPort = await startGrpc(await grpcServerCredentials(server, { requireClientCertificate: true }));
    const failures: unknown[] = [];
    const noted = (work: () => Promise<string>) =>
      keepDoing(() => work().catch((error: unknown) => void failures.push(error)));
    const callers = [1, 2].map(async () => new EchoClient(grpcPort, await grpcChannelCredentials(client)));
    const load = [
      noted(() => repeatable(async () => (await askHttps({ port, ca: undefined as never }, agent)).text)),
      ...(await Promise.all(callers)).map((caller) => {
        const call = (): Promise<string> => caller.echo('hello', { waitForReady: true });
        return noted(KNOWS_STREAMS ? call : () => repeatable(call, [grpc.status.UNAVAILABLE]));
      }),
    ];
    await rotate(load);
    const answers = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(failures).toEqual([]);
    expect(new Set(answers)).toEqual(new Set(['hello']));
  },
);

test("in the same run grpc-js's own provider drops connections, and this one none", async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'), { swap: 'remove' });
  const [first, second] = [pairAt(0), pairAt(1)];
  volume.publish(secretOf(first, ca));
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const own = new grpc.experimental.FileWatcherCertificateProvider({
    certificateFile: volume.path('tls.crt'),
    privateKeyFile: volume.path('tls.key'),
    refreshIntervalMs: 1,
  });
  const ownCredentials = grpc.experimental.createCertificateProviderServerCredentials(own, null, false);
  const [ownPort, port] = [
    await startGrpc(ownCredentials),
    await startGrpc(await grpcServerCredentials(files)),
  ];
  const channel = grpc.credentials.createSsl(Buffer.from(ca));
  const call = async (to: number): Promise<boolean> => {
    const client = new EchoClient(to, channel);
    const answered = client.echo('hello').then(
      () => true,
      () => false,
    );
    return answered.finally(() => client.close());
  };
  await expect.poll(() => call(ownPort)).toBe(true);

  // What a reader meets in the middle of a swap by removal, and of a pair whose key came first.
  let ownFailed = 0;
  // On a busy machine its own provider may be so late that it has read nothing of a gap, or of what came before it.
  for (let index = 0; index < 20 || ownFailed === 0; index += 1) {
    const pair = index % 2 === 0 ? second : first;
    for (const step of volume.steps(secretOf(pair, ca))) {
      if (step.name !== 'unlink' || !step.path.endsWith('..data')) continue;
      await new Promise<void>((resolve) => {
        const listener = (update: unknown): void => {
          if (update !== null) return;
          own.removeIdentityCertificateListener(listener);
          resolve();
        };
        own.addIdentityCertificateListener(listener);
      });
      if (!(await call(ownPort))) ownFailed += 1;
      expect(await call(port)).toBe(true);
    }
  }
});
