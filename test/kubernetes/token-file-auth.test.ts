import { rmSync } from 'node:fs';

import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node';
import { TokenFile } from 'resilient-watcher';
import { tokenRequestClient, withTokenFile, type TokenFileAuth } from 'resilient-watcher/kubernetes';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { outcomeOf } from '../support/outcome-of.js';
import { clusterScene } from '../support/cluster-scene.js';

const BUILDER = 'system:serviceaccount:ci:builder';

async function authScene(): Promise<
  Awaited<ReturnType<typeof clusterScene>> & {
    readonly clock: FakeClock;
    readonly auth: TokenFileAuth;
    readonly kubeConfig: KubeConfig;
    readonly whoAmI: () => Promise<unknown>;
  }
> {
  const clock = new FakeClock(Date.now());
  const scene = await clusterScene();
  const kubeConfig = scene.inPod();
  // Nothing tells of a change: what is seen, is seen by reading.
  const auth = withTokenFile(kubeConfig, { clock, backend: new ScriptedBackend() });
  onTestFinished(() => auth.close());
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  const whoAmI = (): Promise<unknown> =>
    api.createSelfSubjectReview({ body: {} }).then(
      ({ status }) => status?.userInfo?.username,
      (error: unknown) => (error as { code: unknown }).code,
    );
  return { ...scene, clock, auth, kubeConfig, whoAmI };
}

test('a token with a line break is sent without, and one that cannot be read any more is kept', async () => {
  const { tokenFile, clock, whoAmI } = await authScene();
  expect(await whoAmI()).toBe(BUILDER);
  rmSync(tokenFile);
  await clock.advance(61_000);
  expect(await outcomeOf(whoAmI(), clock)).toBe(BUILDER);
});

test('after a 401 the file is read again, so that only one request fails', async () => {
  const { server, project, whoAmI } = await authScene();
  expect(await whoAmI()).toBe(BUILDER);
  await server.rotateSigningKey();
  await project();
  expect(await whoAmI()).toBe(401);
  expect(await whoAmI()).toBe(BUILDER);
});

test('the copies that a TokenRequest client makes of the kubeconfig authenticate in the same way', async () => {
  const { kubeConfig, server } = await authScene();
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  const signal = new AbortController().signal;
  await client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal });
  expect(server.requests).toMatchObject([{ subject: BUILDER, status: 201 }]);
});

test('the token of the file takes the place of a plugin, which is not run', async () => {
  const { server, caFile, tokenFile } = await clusterScene();
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'cluster', server: server.url, caFile, skipTLSVerify: false },
    { name: 'user', exec: { apiVersion: 'client.authentication.k8s.io/v1', command: '/no/such/plugin' } },
  );
  const auth = withTokenFile(kubeConfig, { path: tokenFile });
  onTestFinished(() => auth.close());
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  const { status } = await api.createSelfSubjectReview({ body: {} });
  expect(status?.userInfo?.username).toBe(BUILDER);
});

test('without a token nothing is sent', async () => {
  const { server, inPod, tokenFile } = await clusterScene();
  rmSync(tokenFile);
  const kubeConfig = inPod();
  const auth = withTokenFile(kubeConfig);
  onTestFinished(() => auth.close());
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  await expect(api.createSelfSubjectReview({ body: {} })).rejects.toMatchObject({
    code: 'ERR_TOKEN_UNAVAILABLE',
  });
  expect(server.requests).toEqual([]);
});

test('a kubeconfig without a user, or a user without a file, is refused', async () => {
  expect(() => withTokenFile(new KubeConfig())).toThrow('has no current user');
  const { kubeconfigFile, tokenFile } = await clusterScene();
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(kubeconfigFile('t'));
  expect(() => withTokenFile(kubeConfig)).toThrow('set the option "path"');
  const auth = withTokenFile(kubeConfig, { path: tokenFile });
  onTestFinished(() => auth.close());
  expect(auth.file).toBeInstanceOf(TokenFile);
  expect(kubeConfig.getCurrentUser()).toEqual({ name: 'local' });
});
