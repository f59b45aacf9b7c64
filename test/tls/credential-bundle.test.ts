/** Pod certificates (key and chain in one file) and trust bundles, as kubelet mounts them. */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

import { CertificateSigner, type CertificateKeyType } from '@resilient-watcher/local-api-server';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { serveTls, TlsFiles, type TlsError, type TlsPaths } from 'resilient-watcher/tls';
import { describe, expect, onTestFinished, test } from 'vitest';

import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttps, listen } from '../support/tls-clients.js';

const signer = new CertificateSigner({ name: 'one' });
const other = new CertificateSigner({ name: 'two' });
const [first, second] = [
  signer.issue({ dnsNames: ['localhost'] }),
  signer.issue({ dnsNames: ['localhost'] }),
];

interface Mount {
  readonly volume: KubeletVolume;
  readonly files: TlsFiles;
  readonly clock: FakeClock;
  /** `change`, or the code of what was rejected. */
  readonly events: readonly string[];
}

const bundleIn = (directory: string): string => join(directory, 'bundle.pem');
const bothIn = (directory: string): TlsPaths => ({
  bundle: bundleIn(directory),
  ca: join(directory, 'ca.pem'),
});

function mount(pathsIn: (directory: string) => string | TlsPaths = bundleIn): Mount {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const clock = new FakeClock(Date.now());
  const options = { backend: new ScriptedBackend(), resyncIntervalMs: 0, clock };
  const files = new TlsFiles(pathsIn(volume.directory), options);
  const events: string[] = [];
  files.on('change', () => events.push('change'));
  files.on('rejected', ({ error }) => events.push((error as TlsError).code));
  onTestFinished(() => files.close());
  return { volume, files, clock, events };
}

const pem = (certificate: string): string => certificate.trim();

describe('a credential bundle and a trust bundle', () => {
  test('are one set, and the chain is handed out without the key', async () => {
    const { volume, files } = mount(bothIn);
    volume.publish({ 'bundle.pem': first.bundle, 'ca.pem': signer.certificate, token: 'no PEM' });
    const { cert, key, ca } = await files.get();
    expect([cert, key, ca].map((part) => part?.toString().trim())).toEqual(
      [first.chain, first.key, signer.certificate].map(pem),
    );
    volume.publish({ 'bundle.pem': second.bundle, 'ca.pem': signer.certificate, token: 'no PEM' });
    await files.check();
    expect(files.current?.cert?.toString()).toBe(second.chain);
  });

  test('an empty trust bundle, one that is cut off and one without PEM keep the last good set', async () => {
    const { volume, files, events } = mount(bothIn);
    const both = `${signer.certificate}${other.certificate}`;
    volume.publish({ 'bundle.pem': first.bundle, 'ca.pem': both });
    const good = await files.get();
    for (const [bad, says] of [
      ['', /ca\.pem" is empty/],
      [both.slice(0, -40), /certificate 2 of 2 in ".+ca\.pem": it is cut off/],
    ] as const) {
      volume.publish({ 'bundle.pem': second.bundle, 'ca.pem': bad });
      await files.check();
      expect(files.current).toBe(good);
      expect(files.status().rejected?.message).toMatch(says);
    }
    expect(events).toEqual(['change', 'ERR_TLS_CA', 'ERR_TLS_CA']);
  });

  test('a key of another certificate is said to be in the bundle', async () => {
    const { volume, files } = mount(bothIn);
    volume.publish({ 'bundle.pem': `${first.key}${second.chain}`, 'ca.pem': signer.certificate });
    await expect(files.get()).rejects.toMatchObject({
      cause: {
        code: 'ERR_TLS_MISMATCH',
        message: expect.stringMatching(
          /key in ".+bundle\.pem" is not that of the first certificate in ".+bundle\.pem"/,
        ) as string,
      },
    });
  });
});

test('a bundle that is missing, or has no key, is named', async () => {
  const { volume, files } = mount();
  await files.start();
  expect(files.status().rejected?.message).toBe(`There is no file "${bundleIn(volume.directory)}"`);
  volume.publish({ 'bundle.pem': first.chain });
  await files.check();
  expect(files.status().rejected?.message).toMatch(
    /bundle\.pem" is a file without a private key; TlsFiles takes /,
  );
});

test('a key that is published without its chain waits for it, wherever the two files are', async () => {
  const directory = temporaryDirectory();
  mkdirSync(directory, { recursive: true });
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'chain.pem')];
  writeFileSync(key, first.key);
  writeFileSync(cert, first.chain);
  const files = new TlsFiles({ key, cert });
  onTestFinished(() => files.close());
  const good = await files.get();
  writeFileSync(key, second.key);
  await expect.poll(() => files.status().rejected?.code).toBe('ERR_TLS_MISMATCH');
  expect(files.current).toBe(good);
  writeFileSync(cert, second.chain);
  await expect.poll(() => files.current?.cert?.toString()).toBe(second.chain);
});

/** RSA keys take long to make, the longer one as long as all other tests here. */
const KEY_TYPES: readonly CertificateKeyType[] = [
  ...(['ECDSAP256', 'ED25519', 'RSA3072', 'ECDSAP384', 'ECDSAP521'] as const),
  ...some(['ECDSAP256', 'RSA4096'] as const, 2),
];

test('the type of the key may change from one rotation to the next, with the root in the chain or without', async () => {
  const { volume, files } = mount();
  const intermediate = new CertificateSigner({ name: 'intermediate', issuer: signer });
  volume.publish({ 'bundle.pem': first.bundle });
  const server = createServer((_request, response) => response.end('hello'));
  await serveTls(server, files);
  const port = await listen(server);
  for (const [index, keyType] of KEY_TYPES.entries()) {
    const { bundle } = intermediate.issue({ keyType, dnsNames: ['localhost'] });
    volume.publish({ 'bundle.pem': index % 2 === 0 ? bundle : `${bundle}${signer.certificate}` });
    await files.check();
    const { fingerprint, text } = await askHttps({ port, ca: signer.certificate });
    expect([text, fingerprint]).toEqual(['hello', new X509Certificate(bundle).fingerprint256]);
  }
});

test('a megabyte of opened and never closed blocks is refused without delay', async () => {
  const { volume, files } = mount((directory) => directory);
  volume.publish({
    'bundle.pem': '-----BEGIN CERTIFICATE-----\n'.repeat(36_000),
    'ca.pem': signer.certificate,
  });
  await files.start();
  volume.publish({
    'tls.crt': '-----BEGIN PRIVATE KEY-----\n'.repeat(36_000),
    'tls.key': '-----BEGIN A'.repeat(80_000),
  });
  await files.check();
  expect(files.status()).toMatchObject({ available: false, rejected: { code: 'ERR_TLS_PEM' } });
});
