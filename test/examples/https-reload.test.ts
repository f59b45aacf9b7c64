import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, get } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair, type CertificatePair } from '../support/certificates.js';
import { startExample } from '../support/program.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { keepDoing } from '../support/tls-clients.js';

const ROTATIONS = rounds(6, 100);

const authority = createAuthority('authority');
const pairs = Array.from({ length: 5 }, () => createServerPair(authority));
const otherKind = generateKeyPairSync('ed25519')
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

function secretOf({ cert, key }: CertificatePair): Record<string, string> {
  return { 'tls.crt': cert, 'tls.key': key };
}

function fingerprintOf({ cert }: CertificatePair): string {
  return new X509Certificate(cert).fingerprint256;
}

function pairAt(index: number): CertificatePair {
  const pair = pairs[index % pairs.length];
  if (!pair) throw new Error('There are no pairs');
  return pair;
}

/** What a client saw of one connection. */
interface Sight {
  readonly socket: TLSSocket;
  readonly isResumed: boolean;
  readonly fingerprint: string | undefined;
}

/** A client that verifies the server. Rejects when a handshake or a request fails. */
async function ask(port: number, agent: Agent | false): Promise<Sight> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const address = { host: '127.0.0.1', port, servername: 'localhost' };
    get({ ...address, ca: authority.cert, rejectUnauthorized: true, agent }, resolve).on('error', reject);
  });
  const socket = response.socket as TLSSocket;
  const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
  const isResumed = socket.isSessionReused();
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  expect(text).toBe('hello\n');
  return { socket, isResumed, fingerprint };
}

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}

test.each(['rename', 'remove'] as const)(
  'rotations (%s) cost no handshake and no connection, and a wrong pair is kept out',
  async (swap) => {
    const directory = join(temporaryDirectory(), 'tls');
    const volume = new KubeletVolume(directory, { swap });
    const publish = (secret: Record<string, string>): unknown => volume.publish(secret);
    publish({ 'tls.crt': pairAt(0).cert });
    const program = startExample('https-reload.mjs', { TLS_DIRECTORY: directory });
    await program.until(/no pair yet/);

    publish(secretOf(pairAt(0)));
    const [, digits] = await program.until(/listening on port (\d+)/);
    const port = Number(digits);
    const served = async (): Promise<string | undefined> => (await ask(port, false)).fingerprint;

    const agents = [new Agent({ keepAlive: false }), new Agent({ keepAlive: true, maxSockets: 1 })] as const;
    onTestFinished(() => agents.forEach((agent) => agent.destroy()));
    const fresh = keepDoing(() => ask(port, false));
    const resuming = keepDoing(() => ask(port, agents[0]));
    const keptAlive = keepDoing(() => ask(port, agents[1]));

    const seen = new Set<string | undefined>();
    const rotate = async (from: number, to: number): Promise<void> => {
      for (let index = from; index <= to; index += 1) {
        publish(secretOf(pairAt(index)));
        seen.add(await served());
      }
      await expect.poll(served).toBe(fingerprintOf(pairAt(to)));
    };

    await rotate(1, ROTATIONS / 2);
    const last = pairAt(ROTATIONS / 2);
    const other = pairAt(ROTATIONS / 2 + 1);
    const wrong: [reason: string, secret: Record<string, string>][] = [
      ['tls.key" is not that of the first certificate', { 'tls.crt': other.cert, 'tls.key': last.key }],
      ['tls.key" is not that of the first certificate', { 'tls.crt': other.cert, 'tls.key': otherKind }],
      ['', { 'tls.crt': other.cert, 'tls.key': 'no key' }],
      [`There is no file "${join(directory, 'tls.key')}"`, { 'tls.crt': other.cert }],
      [`There is no file "${join(directory, 'tls.crt')}"`, { 'tls.key': other.key }],
      ['', { 'tls.crt': 'no certificate', 'tls.key': other.key }],
    ];
    for (const [index, [reason, secret]] of wrong.entries()) {
      publish(secret);
      await expect.poll(() => occurrences(program.output, 'kept the last good pair')).toBe(index + 1);
      expect(program.output.trimEnd().split('\n').at(-1)).toMatch(/^kept the last good pair: /);
      expect(program.output.trimEnd().split('\n').at(-1)).toContain(reason);
      expect(await served()).toBe(fingerprintOf(last));
    }
    await rotate(ROTATIONS / 2 + 1, ROTATIONS);

    const [freshSights, resumingSights, keptAliveSights] = await Promise.all([
      fresh.stop(),
      resuming.stop(),
      keptAlive.stop(),
    ]);
    expect(seen.size).toBeGreaterThanOrEqual(3);
    expect(seen).not.toContain(undefined);
    expect(freshSights.length).toBeGreaterThan(0);
    expect(resumingSights.some(({ isResumed }) => isResumed)).toBe(true);
    expect(keptAliveSights.length).toBeGreaterThan(1);
    expect(new Set(keptAliveSights.map(({ socket }) => socket)).size).toBe(1);
    expect(occurrences(program.output, 'kept the last good pair')).toBe(wrong.length);
    expect(program.output).not.toContain('PRIVATE KEY');

    expect(await program.terminated()).toBe(0);
  },
);
