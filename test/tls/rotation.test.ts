/** Real handshakes while the certificate rotates: none fails, none mixes two pairs, nothing open is dropped. */
import { createSecureServer } from 'node:http2';
import { Agent, createServer } from 'node:https';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { askHttp2, askHttps, fingerprintOn, keepDoing, listen, openHttp2 } from '../support/tls-clients.js';
import { fingerprintOf, secretOf } from '../support/tls-sets.js';

const ROTATIONS = rounds(8, 500);
/** After every so many there is a bad pair in between. */
const BAD_EVERY = 25;

const authority = await createAuthority('authority');
const pairs = await Promise.all(Array.from({ length: 5 }, () => createServerPair(authority)));
const ca = authority.cert;

test.each(['rename', 'remove'] as const)(
  'rotations (%s) under load on https and http2: no handshake fails and no connection is lost',
  async (swap) => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'), { swap });
    const pairAt = (index: number): (typeof pairs)[0] => pairs[index % pairs.length] ?? authority;
    volume.publish(secretOf(pairAt(0)));
    const files = new TlsFiles(volume.directory);
    onTestFinished(() => files.close());

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
    const known = new Set<string | undefined>(['resumed', ...pairs.map(fingerprintOf)]);
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

    const answers = (): (string | undefined)[] => load.flatMap(({ results }) => results);
    const seenSoFar = (): Set<string | undefined> => new Set(answers());
    let rotations = 0;
    // On a busy machine a pair may come and go before a client has seen it.
    while (rotations < ROTATIONS || seenSoFar().size < known.size) {
      rotations += 1;
      const index = rotations;
      if (index % BAD_EVERY === 0) {
        volume.publish(secretOf({ cert: pairAt(index).cert, key: pairAt(index + 1).key }));
        await files.check();
      }
      const previous = files.current;
      volume.publish(secretOf(pairAt(index)));
      await files.changed({ previous });
      // Every second one stays until the clients have seen it.
      const before = answers().length;
      if (index % 2 === 0)
        await expect.poll(() => answers().length).toBeGreaterThan(before + 2 * load.length);
      if (index % 10 === 0) {
        expect((await askHttps({ port: httpsPort, ca }, kept)).socket).toBe(oldSocket);
        expect(await askHttp2(session)).toBe('hello');
      }
    }

    const seen = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(seen.filter((fingerprint) => !known.has(fingerprint))).toEqual([]);
    expect(new Set(seen)).toEqual(known);
    const last = fingerprintOf(pairAt(rotations));
    expect((await askHttps({ port: httpsPort, ca })).fingerprint).toBe(last);
    expect(fingerprintOn((await openHttp2({ port: http2Port, ca })).socket)).toBe(last);
    expect(files.status()).toMatchObject({ changes: rotations + 1, rejected: null });
    expect(files.status().rejections).toBe(Math.floor(rotations / BAD_EVERY));
    expect(servedHttps.status()).toMatchObject({ changes: rotations + 1, lastError: null });
    expect(servedHttp2.status()).toMatchObject({ changes: rotations + 1, lastError: null });
  },
);
