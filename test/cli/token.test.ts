/** `token` and `kubeconfig` as processes of their own, against an API server on a real socket. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, test, type TestContext } from 'vitest';

import { root } from '../docs/markdown.js';
import { CommandLines, runCli, startCli, type Program } from '../support/program.js';
import { clusterScene, type ClusterScene } from '../support/cluster-scene.js';
import { withMounts } from '../support/namespace.js';

/** A script that mounts an empty directory over the packages of the Kubernetes client: it is not installed. */
const WITHOUT_CLIENT = `mount -t tmpfs tmpfs ${join(root, 'node_modules/@kubernetes')}`;

/** The flags that make `token` ask the server of the scene for a token of `ci/builder`, and where it writes it. */
async function account(
  scene: ClusterScene,
  out = join(scene.directory, 'out', 'token'),
): Promise<{ out: string; flags: readonly string[] }> {
  const { token } = await scene.server.mint('ci', 'builder', { expirationSeconds: 24 * 3_600 });
  const flags = [
    '--out',
    out,
    '--service-account',
    'ci/builder',
    '--kubeconfig',
    scene.kubeconfigFile(token),
  ];
  return { out, flags };
}

/** The claims of the token in a file. */
function claimsIn(file: string): {
  readonly sub: string;
  readonly aud: readonly string[];
  readonly exp: number;
} {
  const [, claims = ''] = readFileSync(file, 'utf8').split('.');
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as ReturnType<typeof claimsIn>;
}

const commands = new CommandLines();

const readable = (file: string): string => readFileSync(file, 'utf8');

test('--once writes a token of the account and exits with 0; the token is printed nowhere', async () => {
  const scene = await clusterScene();
  const { out, flags } = await account(scene);
  const asked = ['--audience', 'vault', '--audience', 'db', '--expiration', '10m'];
  const { code, stdout, stderr } = await commands.run([...['token', ...flags, ...asked, '--once', '--json']]);
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
  expect(stdout).not.toContain(readable(out).split('.')[2]);
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
    const { code, stderr } = await commands.run(['token', ...flags, '--once']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(says)]);
  });

  test('a file that cannot be written', async () => {
    const scene = await clusterScene();
    const { flags } = await account(scene, '/proc/nowhere/token');
    const { code, stderr } = await commands.run(['token', ...flags, '--once']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Cannot write "/proc/nowhere/token"')]);
  });
});

test('outside of a pod and without a kubeconfig it ends at once, even without --once', async () => {
  const args = ['token', '--out', '/tmp/t', '--service-account', 'a/b'];
  const { code, stderr } = await commands.run(args, { KUBERNETES_SERVICE_HOST: '' });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/this is not a pod; give --kubeconfig/)]);
});

describe('in a pod, without the Kubernetes client', () => {
  /** Runs the program with the volume of the scene where kubelet mounts it. */
  function inPod(
    context: TestContext,
    { directory, server }: ClusterScene,
    args: readonly string[],
  ): Program {
    const at = '/run/secrets/kubernetes.io/serviceaccount';
    const mount = `${WITHOUT_CLIENT} && mount -t tmpfs tmpfs /run && mkdir -p ${at} && mount --bind ${directory}/projected ${at}`;
    const { hostname, port } = new URL(server.url);
    return startCli(args, {
      prefix: withMounts(context, mount),
      env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
    });
  }

  test('a server that fails is asked again, a token that expires meanwhile is reported, and SIGTERM ends it with 0', async (context) => {
    const scene = await clusterScene();
    // Tokens of 10 minutes that end in some seconds: the clock of the server is that much behind.
    scene.server.skewMs = -595_000;
    await scene.project();
    const out = join(scene.directory, 'token');
    scene.server.script({ kind: 'throttled', retryAfterSeconds: 1 });
    const program = inPod(context, scene, ['token', '--out', out, '--expiration', '10m']);
    await program.until(/\(429\).*; next attempt in \d+ ms/);
    await program.until(/written, valid until/);
    expect(claimsIn(out).sub).toBe('system:serviceaccount:ci:builder');
    scene.server.otherwise = { kind: 'unavailable' };
    await program.until(/ERROR the token has expired: .*\(503\)/);
    expect(await program.terminated()).toBe(0);
  });

  test("the pod's own account is the default, and a rotated token of the pod brings a new one at once", async (context) => {
    const scene = await clusterScene();
    const out = join(scene.directory, 'token');
    const program = inPod(context, scene, ['token', '--out', out, '--json']);
    await program.until(/"delivered"/);
    const first = readable(out);
    expect(claimsIn(out).sub).toBe('system:serviceaccount:ci:builder');
    await scene.server.rotateSigningKey();
    await scene.project();
    await program.until(/"delivered"[^]*"delivered"/);
    expect(readable(out)).not.toBe(first);
    expect(await program.terminated()).toBe(0);
  });

  test('a kubeconfig for another account, as the DaemonSet of deploy/ writes it, is one that kubectl could use', async (context) => {
    const scene = await clusterScene();
    scene.server.addServiceAccount('kube-system', 'calico-cni-plugin');
    const out = join(scene.directory, 'kubeconfig');
    const program = inPod(context, scene, [
      ...['kubeconfig', `--out=${out}`, `--server=${scene.server.url}`, '--once'],
      '--ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
      '--service-account=kube-system/calico-cni-plugin',
    ]);
    expect(await program.exit, program.stderr).toBe(0);
    const written = new KubeConfig();
    written.loadFromFile(out);
    const { token = '' } = written.getCurrentUser() ?? {};
    expect(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).toContain('calico-cni-plugin');
    expect(written.getCurrentCluster()).toMatchObject({
      server: scene.server.url,
      caData: Buffer.from(scene.server.caPem).toString('base64'),
    });
  });

  test('kubeconfig waits for its CA file, and writes nothing before it is valid', async (context) => {
    const scene = await clusterScene();
    const { out, flags } = await account(scene, join(scene.directory, 'cni-kubeconfig'));
    const ca = join(scene.directory, 'ca.crt');
    const authority = ['--server', scene.server.url, '--ca-file', ca];
    const missing = await commands.run(['kubeconfig', ...flags, ...authority, '--once']);
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringContaining(`Cannot read the CA in ${ca}`),
    ]);
    writeFileSync(ca, 'not a certificate');
    const program = inPod(context, scene, ['kubeconfig', '--out', out, ...authority]);
    await program.until(/is not a bundle of PEM certificates/);
    expect(() => statSync(out)).toThrow('ENOENT');
    writeFileSync(ca, scene.server.caPem);
    await program.until(/written, valid until/);
    expect(readable(out)).toContain(scene.server.url);
  });
});

test('a kubeconfig without the Kubernetes client ends with 1, and says what to install', async (context) => {
  const scene = await clusterScene();
  const { flags } = await account(scene);
  const { code, stderr } = await runCli(['token', ...flags], { prefix: withMounts(context, WITHOUT_CLIENT) });
  expect([code, stderr]).toEqual([1, expect.stringContaining('npm install @kubernetes/client-node')]);
});
