/** Real handshakes while the certificate rotates: none fails, none mixes two pairs, nothing open is dropped. */
import { createSecureServer } from 'node:http2';
import { Agent, createServer } from 'node:https';

import { serveTls } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { ca, rotatingPair } from '../support/rotating-pair.js';
import { askHttp2, askHttps, fingerprintOn, keepDoing, listen, openHttp2 } from '../support/tls-clients.js';

test.each(['rename', 'remove'] as const)(
  'rotations (%s) under load on https and http2: no handshake fails and no connection is lost',
  async (swap) => {
    const { files, fingerprints, rotate } = rotatingPair(swap);

    // On a busy machine ten rotations may take longer than an idle connection is kept by default.
    const https = createServer({ keepAliveTimeout: 0 }, (_request, response) => response.end('hello'));
    const http2 = createSecureServer({}, (_request, response) => response.end('hello'));
    const [servedHttps, servedHttp2] = await Promise.all([serveTls(https, files), serveTls(http2, files)]);
    const [httpsPort, http2Port] = [await listen(https), await listen(http2)];

    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const resuming = new Agent({ keepAlive: false });
    onTestFinished(() => [kept, resuming].forEach((agent) => agent.destroy()));
    const session = await openHttp2({ port: http2Port, ca });
    const oldSocket = (await askHttps({ port: httpsPort, ca }, kept)).socket;

    // A resumed session shows no certificate.
    const known = new Set<string | undefined>(['resumed', ...fingerprints]);
    const load = [
      keepDoing(async () => (await askHttps({ port: httpsPort, ca })).fingerprint),
      keepDoing(async () => {
        const { isResumed, fingerprint } = await askHttps({ port: httpsPort, ca }, resuming);
        return isResumed ? 'resumed' : fingerprint;
      }),
      keepDoing(async () => {
        const fresh = await openHttp2({ port: http2Port, ca });
        expect(await askHttp2(fresh)).toBe('hello');
        const fingerprint = fingerprintOn(fresh.socket);
        fresh.destroy();
        return fingerprint;
      }),
    ];

    const { changes, rejections, last } = await rotate(load, known, async (rotation) => {
      if (rotation % 10 !== 0) return;
      expect((await askHttps({ port: httpsPort, ca }, kept)).socket).toBe(oldSocket);
      expect(await askHttp2(session)).toBe('hello');
    });

    const seen = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(seen.filter((fingerprint) => !known.has(fingerprint))).toEqual([]);
    expect(new Set(seen)).toEqual(known);
    expect((await askHttps({ port: httpsPort, ca })).fingerprint).toBe(last);
    expect(fingerprintOn((await openHttp2({ port: http2Port, ca })).socket)).toBe(last);
    expect(files.status()).toMatchObject({ changes, rejections, rejected: null });
    expect(servedHttps.status()).toMatchObject({ changes, lastError: null });
    expect(servedHttp2.status()).toMatchObject({ changes, lastError: null });
  },
);
