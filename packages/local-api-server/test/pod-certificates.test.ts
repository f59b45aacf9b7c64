/** Pod certificates and trust bundles of the testing kit: requested from the API server, published by kubelet. */
import { X509Certificate } from 'node:crypto';
import { statSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';

import {
  CertificateSigner,
  LocalApiServer,
  podCertificateFiles,
  trustBundleFile,
} from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { podCertificateRequest, REFUSED_REQUESTS, refusedTrustBundles } from './pod-certificate-request.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

/** The fields of the answers that are looked at. */
interface Answer {
  readonly status: {
    readonly conditions: readonly { readonly type: string }[];
    readonly certificateChain: string;
    readonly notBefore: string;
    readonly beginRefreshAt: string;
    readonly notAfter: string;
  };
  readonly metadata: { readonly name: string; readonly creationTimestamp: string };
  readonly spec: { readonly trustBundle: string; readonly maxExpirationSeconds: number };
  readonly message: string;
  readonly items: readonly unknown[];
}

test('a request for a pod certificate is issued, denied or left pending, and a trust bundle is read', async () => {
  const server = await LocalApiServer.start();
  onTestFinished(() => server.close());
  const { token } = await server.mint('default', 'web');
  const call = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status?: number; body: Answer }> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const options = { method, headers, ca: server.caPem };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(`${server.url}/apis/certificates.k8s.io/v1${path}`, options, resolve)
        .on('error', reject)
        .end(body && JSON.stringify(body));
    });
    const text = (await response.setEncoding('utf8').toArray()).join('');
    return { status: response.statusCode ?? 0, body: JSON.parse(text) as Answer };
  };
  const path = '/namespaces/default/podcertificaterequests';
  const { spec, metadata } = podCertificateRequest();
  const { status, body } = await call('POST', path, { metadata: { name: 'one' }, spec });
  expect([status, body.status.conditions[0]?.type]).toEqual([201, 'Issued']);
  const leaf = new X509Certificate(body.status.certificateChain);
  expect(leaf.subjectAltName).toContain('URI:spiffe://cluster.local/ns/default/sa/web');
  expect(leaf.verify(new X509Certificate(server.podCertificateSigner.certificate).publicKey)).toBe(true);
  expect(body.spec.maxExpirationSeconds).toBe(86_400);
  const { notBefore, beginRefreshAt, notAfter } = body.status;
  for (const time of [notBefore, beginRefreshAt, notAfter, body.metadata.creationTimestamp])
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  // The API server compares them with the certificate.
  expect([notBefore, notAfter].map(Date.parse)).toEqual([leaf.validFrom, leaf.validTo].map(Date.parse));
  expect(Date.parse(beginRefreshAt)).toBeLessThan(Date.parse(notAfter));
  expect((await call('GET', `${path}/one`)).body).toEqual(body);
  expect((await call('POST', path, { metadata, spec })).body.metadata.name).toMatch(/^req-.{5}$/);

  server.podCertificateOutcome = 'Denied';
  expect((await call('POST', path, { spec })).body.status.conditions).toMatchObject([{ type: 'Denied' }]);
  for (const [field, more] of REFUSED_REQUESTS) {
    const refused = await call('POST', path, podCertificateRequest(more));
    expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining(field)]);
  }

  server.putTrustBundle(
    'example.com:signer:v1',
    server.podCertificateSigner.certificate,
    'example.com/signer',
  );
  const bundle = await call('GET', '/clustertrustbundles/example.com:signer:v1');
  expect(bundle.body.spec.trustBundle).toBe(server.podCertificateSigner.certificate);
  server.removeTrustBundle('example.com:signer:v1');
  expect((await call('GET', '/clustertrustbundles')).body.items).toEqual([]);
  const { certificate } = server.podCertificateSigner;
  for (const [name, pem, signer] of refusedTrustBundles(certificate))
    expect(() => server.putTrustBundle(name, pem, signer)).toThrow(`ClusterTrustBundle '${name}'`);
});

test('the files have the formats of kubelet: one bundle or two files, and a trust bundle without repetitions', async () => {
  const signers = Array.from({ length: 6 }, (_, index) => new CertificateSigner({ name: `signer ${index}` }));
  const [signer = new CertificateSigner()] = signers;
  const issued = signer.issue();
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const all = signers.map(({ certificate }) => `a comment\n${certificate}`);
  const publish = (seed: number): void => {
    volume.publish({
      ...podCertificateFiles(issued, { credentialBundlePath: 'bundle.pem' }, { mode: 0o600 }),
      'ca.pem': trustBundleFile([...all, ...all], { seed }),
    });
  };
  publish(0);
  const read = (): string => readFileSync(volume.path('ca.pem'), 'utf8');
  const first = read();
  publish(0);
  expect(read()).toBe(first);
  expect(first.match(/^-----BEGIN CERTIFICATE-----$/gm)).toHaveLength(6);
  expect(first).not.toContain('comment');
  expect(statSync(volume.path('bundle.pem')).mode & 0o777).toBe(0o600);
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const { current } = { current: await files.get() };
  for (let seed = 1; read() === first; seed += 1) publish(seed);
  await files.check();
  expect(files.current).toBe(current);
  expect(podCertificateFiles(issued, { keyPath: 'key.pem', certificateChainPath: 'chain.pem' })).toEqual({
    'key.pem': { data: issued.key, mode: 0o644 },
    'chain.pem': { data: issued.chain, mode: 0o644 },
  });
});
