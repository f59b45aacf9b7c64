/** `token` and `kubeconfig` where kubelet mounts the credentials of a pod, and where packages are not installed. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, test, type TestContext } from 'vitest';

import { root } from '../../../../test/docs/markdown.js';
import { clusterScene, type ClusterScene } from '../../../../test/support/cluster-scene.js';
import { withMounts } from '../../../../test/support/namespace.js';
import { runCli, startCli, type Program } from '../../../../test/support/program.js';
import { account, claimsIn } from '../../../../test/support/token-account.js';

/** A script that mounts an empty directory over the packages of the Kubernetes client: it is not installed. */
const WITHOUT_CLIENT = `mount -t tmpfs tmpfs ${join(root, 'node_modules/@kubernetes')}`;

const readable = (file: string): string => readFileSync(file, 'utf8');

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
    await program.until(/ERROR .*: expired: .*\(503\)/);
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
    const missing = await runCli(['kubeconfig', ...flags, ...authority, '--once']);
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringContaining(`Cannot read the CA in ${ca}`),
    ]);
    const program = inPod(context, scene, ['kubeconfig', '--out', out, ...authority]);
    await program.until(/Cannot read the CA/);
    writeFileSync(ca, 'not a certificate');
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
