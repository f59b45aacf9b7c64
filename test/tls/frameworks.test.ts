/** `serveTls` with the servers that Fastify and Express make. */
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';
import type { Server } from 'node:tls';

import express from 'express';
import fastify from 'fastify';
import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, fingerprintOn, listen, openHttp2 } from '../support/tls-clients.js';
import { fingerprintOf, secretOf } from '../support/tls-sets.js';

const authority = await createAuthority('authority');
const [first, second] = [await createServerPair(authority), await createServerPair(authority)];
const ca = authority.cert;

const frameworks: [name: string, open: () => Promise<Server>][] = [
  [
    'Fastify',
    async () => {
      const app = fastify({ https: {} });
      app.get('/', () => 'hello');
      await app.ready();
      onTestFinished(() => app.close());
      return app.server;
    },
  ],
  [
    'Express',
    () => {
      const app = express();
      app.get('/', (_request, response) => void response.send('hello'));
      return Promise.resolve(createServer({ keepAliveTimeout: 0 }, app));
    },
  ],
];

test.each(frameworks)(
  '%s serves each new certificate, and a kept connection goes on',
  async (_name, open) => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
    volume.publish(secretOf(first));
    const files = new TlsFiles(volume.directory);
    onTestFinished(() => files.close());
    const server = await open();
    await serveTls(server, files);
    const address = { port: await listen(server), ca };
    const kept = new Agent({ keepAlive: true });
    onTestFinished(() => kept.destroy());

    const before = await askHttps(address, kept);
    expect(before).toMatchObject({ text: 'hello', fingerprint: fingerprintOf(first) });
    volume.publish(secretOf(second));
    await files.check();
    expect(await askHttps(address)).toMatchObject({ text: 'hello', fingerprint: fingerprintOf(second) });
    const after = await askHttps(address, kept);
    expect(after.text).toBe('hello');
    expect(after.socket).toBe(before.socket);
  },
);

test('Fastify over HTTP/2 is served in the same way', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(secretOf(first));
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const app = fastify({ http2: true, https: {} });
  app.get('/', () => 'hello');
  await app.ready();
  onTestFinished(() => app.close());
  await serveTls(app.server, files);
  const address = { port: await listen(app.server), ca };

  const session = await openHttp2(address);
  expect(await askHttp2(session)).toBe('hello');
  volume.publish(secretOf(second));
  await files.check();
  expect(await askHttp2(session)).toBe('hello');
  const next = await openHttp2(address);
  expect(await askHttp2(next)).toBe('hello');
  expect(fingerprintOn(next.socket)).toBe(fingerprintOf(second));
});
