/** Pod certificates and trust bundles of the testing kit, as kubelet publishes them. */
import { statSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  CertificateSigner,
  KubeletVolume,
  podCertificateFiles,
  trustBundleFile,
} from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

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
