/** Credentials of gRPC servers and channels that follow the files on both sides. */
import { join } from 'node:path';

import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles, type TlsParser, type TlsPem } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../../../test/support/certificates.js';
import { RevokingAuthority } from '../../../test/support/revoking-authority.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { secretOf } from '../../../test/support/tls-sets.js';
import { EchoClient, startGrpc } from './echo.js';

const authority = createAuthority('authority');
const stranger = createAuthority('stranger');
const serverPair = createServerPair(authority);
const clientPair = createServerPair(authority, { name: 'client' });
const ca = authority.cert;

function openFiles(first: Record<string, string | Buffer>): { volume: KubeletVolume; files: TlsFiles } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(first);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  return { volume, files };
}

test('gRPC with certificates on both sides follows the files on both sides', async () => {
  const onServer = openFiles(secretOf(serverPair, ca));
  const onClient = openFiles(secretOf(clientPair, ca));
  const port = await startGrpc(
    await grpcServerCredentials(onServer.files, { requireClientCertificate: true }),
  );
  const credentials = await grpcChannelCredentials(onClient.files);
  const old = new EchoClient(port, credentials);
  expect(await old.echo('old')).toBe('old');

  // A new authority for both: a client with the old one would be refused.
  const [newServer, newClient] = [createServerPair(stranger), createServerPair(stranger)];
  onServer.volume.publish(secretOf(newServer, stranger.cert));
  await onServer.files.check();
  await expect(new EchoClient(port, credentials).echo('too early')).rejects.toThrow(/UNAVAILABLE/);
  onClient.volume.publish(secretOf(newClient, stranger.cert));
  await onClient.files.check();
  expect(await new EchoClient(port, credentials).echo('new')).toBe('new');
  expect(await old.echo('still')).toBe('still');

  // Without a CA bundle the last one stays in force.
  onServer.volume.publish(secretOf(createServerPair(stranger)));
  await onServer.files.check();
  expect(await new EchoClient(port, credentials).echo('known')).toBe('known');
  const unknown = openFiles(secretOf(clientPair, stranger.cert)).files;
  const refused = new EchoClient(port, await grpcChannelCredentials(unknown));
  await expect(refused.echo('unknown')).rejects.toThrow(/UNAVAILABLE/);
});

test('a client whose CA was removed after it connected is refused before its first call', async () => {
  const { volume, files } = openFiles(secretOf(serverPair, `${ca}${stranger.cert}`));
  const port = await startGrpc(await grpcServerCredentials(files, { requireClientCertificate: true }));
  const leaving = openFiles(secretOf(createServerPair(stranger), ca)).files;
  const client = new EchoClient(port, await grpcChannelCredentials(leaving));
  await client.connect();
  volume.publish(secretOf(serverPair, ca));
  await files.check();
  await expect(client.echo('after')).rejects.toThrow();
});

test('files without what a server needs are refused immediately', async () => {
  const withoutCa = openFiles(secretOf(serverPair)).files;
  await expect(grpcServerCredentials(withoutCa, { requireClientCertificate: true })).rejects.toMatchObject({
    code: 'ERR_TLS_CA',
  });
  const { volume } = openFiles(secretOf(serverPair, ca));
  const bundle = new TlsFiles({ ca: volume.path('ca.crt') });
  onTestFinished(() => bundle.close());
  await expect(grpcServerCredentials(bundle)).rejects.toMatchObject({ code: 'ERR_TLS_MISSING' });
});

test('a set of another format, which a parser makes PEM, serves, and presents a client', async () => {
  const { volume } = openFiles({ 'set.json': JSON.stringify({ ...serverPair, ca }) });
  const parse: TlsParser = ({ set }) => JSON.parse(String(set)) as TlsPem;
  const files = new TlsFiles({ set: volume.path('set.json') }, { parse });
  onTestFinished(() => files.close());
  const port = await startGrpc(await grpcServerCredentials(files, { requireClientCertificate: true }));
  const client = new EchoClient(port, await grpcChannelCredentials(files));
  expect(await client.echo('hello')).toBe('hello');
});

test.each<[name: string, call: (files: TlsFiles) => Promise<unknown>]>([
  ['grpcServerCredentials', grpcServerCredentials],
  ['grpcChannelCredentials', grpcChannelCredentials],
])('%s says that it takes a TlsFiles', async (name, call) => {
  await expect(call('/etc/tls' as never)).rejects.toThrow(`${name}: files must be a TlsFiles`);
});

const revoking = new RevokingAuthority('revoking');

test('revocation lists, which grpc-js does not take, are refused where they would have to be used', async () => {
  const { volume } = openFiles({ ...secretOf(serverPair, revoking.cert), 'ca.crl': revoking.list([]) });
  const path = (name: string): string => volume.path(name);
  const files = new TlsFiles({
    cert: path('tls.crt'),
    key: path('tls.key'),
    ca: path('ca.crt'),
    crl: path('ca.crl'),
  });
  onTestFinished(() => files.close());
  const refusal = {
    code: 'ERR_TLS_UNSUPPORTED',
    message: expect.stringContaining('revocation lists') as string,
  };
  await expect(grpcChannelCredentials(files)).rejects.toMatchObject(refusal);
  await expect(grpcServerCredentials(files, { requireClientCertificate: true })).rejects.toMatchObject(
    refusal,
  );
  expect(await grpcServerCredentials(files)).toBeDefined();
});
