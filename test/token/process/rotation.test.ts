import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { fileSink, TokenRefresher, type ServiceAccountToken } from 'resilient-watcher';
import { FakeTokenClient, KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { rounds } from '../../support/rounds.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const ROTATIONS = rounds(10, 30);

function kubeconfig(token: ServiceAccountToken): string {
  // Large enough that a write in place would be seen half done.
  const padding = 'x'.repeat(256 * 1024);
  return JSON.stringify({ kind: 'Config', users: [{ user: { token: token.value } }], padding, end: 'whole' });
}

test('when a projected token rotates, a new one is minted, and another process never reads a partial kubeconfig', async () => {
  const root = temporaryDirectory();
  const path = join(root, 'kubeconfig');
  const volume = new KubeletVolume(join(root, 'serviceaccount'));
  volume.publish({ token: mintTestToken({ jti: 'projected 0' }) });
  const client = new FakeTokenClient();
  await using refresher = new TokenRefresher({
    client,
    tokenFile: volume.path('token'),
    sinks: [fileSink(path, { render: kubeconfig })],
    minIntervalMs: 0,
    wakeJitterMs: 0,
  });
  await refresher.start();
  expect(statSync(path).mode & 0o777).toBe(0o600);

  const reader = fork(fileURLToPath(new URL('reading-process.mjs', import.meta.url)), [path]);
  onTestFinished(() => void reader.kill('SIGKILL'));
  await once(reader, 'message');
  for (let n = 1; n <= ROTATIONS; n += 1) {
    client.rotateSigningKey();
    const delivered = new Promise<void>((resolve) => refresher.once('delivered', () => resolve()));
    volume.publish({ token: mintTestToken({ jti: `projected ${n}` }) });
    await delivered;
    const written = JSON.parse(readFileSync(path, 'utf8')) as { users: { user: { token: string } }[] };
    expect(client.accepts(written.users[0]?.user.token ?? '')).toBe(true);
  }
  expect(client.requests).toHaveLength(ROTATIONS + 1);

  reader.send('stop');
  const [report] = (await once(reader, 'message')) as [{ reads: number; seen: string[] }];
  expect(report.reads).toBeGreaterThan(0);
  expect(report.seen.length).toBeGreaterThan(0);
  await once(reader, 'exit');
  expect(reader.exitCode).toBe(0);
});
