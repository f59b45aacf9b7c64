/** A SPIFFE folder: OpenSSL verifies clients with the bundle of the trust domain, and an interceptor authorizes them by their ID. */
import { join } from 'node:path';

import { ServerInterceptingCall, status, type ServerInterceptor } from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { EchoClient, startGrpc } from './echo.js';

const ID = 'spiffe://home.org/a';

const root = new CertificateSigner();
const own = root.issue({ uris: ['spiffe://home.org/server'], dnsNames: ['localhost'] });

function filesOf(issued: IssuedCertificate): TlsFiles {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'spiffe'));
  const [bundle, ca] = ['credential-bundle.private-key.x509.pem', 'home.org.spiffe-trust-bundle.x509.pem'];
  volume.publish({ [bundle]: issued.bundle, [ca]: root.certificate });
  const files = new TlsFiles({ bundle: volume.path(bundle), ca: volume.path(ca) });
  onTestFinished(() => files.close());
  return files;
}

test('an interceptor refuses calls of a client that is not named', async () => {
  const allowed = new Set([`URI:${ID}`]);
  const authorize: ServerInterceptor = (_method, call) =>
    allowed.has(call.getAuthContext().sslPeerCertificate?.subjectaltname ?? '')
      ? new ServerInterceptingCall(call)
      : new ServerInterceptingCall(call, {
          start: () => call.sendStatus({ code: status.PERMISSION_DENIED, details: 'not authorized' }),
        });
  const credentials = await grpcServerCredentials(filesOf(own), { requireClientCertificate: true });
  const port = await startGrpc(credentials, { interceptors: [authorize] });
  const clientOf = async (name: string): Promise<EchoClient> =>
    new EchoClient(port, await grpcChannelCredentials(filesOf(root.issue({ uris: [name] }))));
  expect(await (await clientOf(ID)).echo('hello')).toBe('hello');
  await expect((await clientOf('spiffe://home.org/b')).echo('hello')).rejects.toMatchObject({
    code: status.PERMISSION_DENIED,
    details: 'not authorized',
  });
});
