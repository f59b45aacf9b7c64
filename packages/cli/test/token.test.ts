/** `token` and `kubeconfig` against an API server on a real socket. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { clusterScene, type ClusterScene } from '../../../test/support/cluster-scene.js';
import { runMain } from './support/command-line.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { account, claimsIn } from '../../../test/support/token-account.js';

test('--once writes a token of the account and exits with 0; the token is printed nowhere', async () => {
  const scene = await clusterScene();
  const { out, flags } = await account(scene);
  const asked = ['--audience', 'vault', '--audience', 'db', '--expiration', '10m'];
  const { code, stdout, stderr } = await runMain([...['token', ...flags, ...asked, '--once', '--json']]);
  expect([code, stderr], stdout).toEqual([0, '']);
  const { sub, aud, exp } = claimsIn(out);
  expect([sub, aud]).toEqual(['system:serviceaccount:ci:builder', ['vault', 'db']]);
  const [line = ''] = stdout.split('\n');
  expect(JSON.parse(line)).toMatchObject({
    event: 'delivered',
    sink: out,
    expiresAt: new Date(exp * 1_000).toISOString(),
  });
  expect(statSync(out).mode & 0o777).toBe(0o600);
  expect(stdout).not.toContain(readFileSync(out, 'utf8').split('.')[2]);
});

describe('a failure with --once ends with 1 and says what to do', () => {
  const cases: Record<string, { breaks: (scene: ClusterScene) => unknown; says: RegExp }> = {
    'a server that does not work': {
      breaks: ({ server }) => (server.otherwise = { kind: 'unavailable' }),
      says: /\(503\)/,
    },
    'a server that cannot be reached': {
      breaks: ({ server }) => server.refuse(),
      says: /ECONNREFUSED/,
    },
    'an account that may not': {
      breaks: ({ server }) => server.forbid('ci', 'builder'),
      says: /\(403\).*grant "create" on "serviceaccounts\/token"/,
    },
    'an account that does not exist': {
      breaks: ({ server }) => server.deleteServiceAccount('ci', 'builder'),
      says: /\((401|404)\)/,
    },
    'credentials that were revoked': {
      breaks: ({ server }) => server.rotateSigningKey(),
      says: /\(401\)/,
    },
  };
  test.each(Object.entries(cases))('%s', async (_, { breaks, says }) => {
    const scene = await clusterScene();
    const { flags } = await account(scene);
    await breaks(scene);
    const { code, stderr } = await runMain(['token', ...flags, '--once', '--log-level', 'error']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(says)]);
  });

  test('a file that cannot be written', async () => {
    const scene = await clusterScene();
    const { flags } = await account(scene, '/proc/nowhere/token');
    const { code, stderr } = await runMain(['token', ...flags, '--once']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Cannot write "/proc/nowhere/token"')]);
  });
});

test('outside of a pod nothing waits for the token of a pod', async () => {
  const scene = await clusterScene();
  const { out, flags } = await account(scene);
  const env = { KUBERNETES_SERVICE_HOST: '' };
  // A clock that stands.
  const clock = new FakeClock(Date.now());
  expect(await runMain(['token', ...flags, '--once'], { clock, env })).toMatchObject({ code: 0 });
  expect(claimsIn(out).sub).toBe('system:serviceaccount:ci:builder');
});

test('outside of a pod and without a kubeconfig it ends at once, even without --once', async () => {
  const args = ['token', '--out', '/tmp/t', '--service-account', 'a/b'];
  const { code, stderr } = await runMain(args, { env: { KUBERNETES_SERVICE_HOST: '' } });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/this is not a pod; give --kubeconfig/)]);
});

test('a token is not written to a pipe, a socket or a device, and it is said what to do', async () => {
  const directory = temporaryDirectory();
  const [pipe, socket] = [join(directory, 'pipe'), join(directory, 'socket')];
  execFileSync('mkfifo', [pipe]);
  const server = createServer().listen(socket);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  for (const out of [pipe, socket, '/dev/null']) {
    const args = ['token', '--out', out, '--service-account', 'ci/builder', '--kubeconfig', '/nowhere'];
    const { code, stderr } = await runMain(args);
    expect([code, stderr], out).toEqual([
      2,
      expect.stringMatching(/is a pipe.*cannot be replaced; write to a file/),
    ]);
  }
});
