import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import {
  AuthenticationV1Api,
  CoreV1Api,
  KubeConfig,
  RbacAuthorizationV1Api,
  type User,
} from '@kubernetes/client-node';
import { TokenRefresher } from 'resilient-watcher';
import { kubeconfigSink, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { assetsDirectory, startControlPlane, type ControlPlane } from './control-plane.js';

const assets = assetsDirectory();
const namespace = 'end-to-end';

function kubeConfigAs(user: User, { url, ca }: ControlPlane): KubeConfig {
  const kubeConfig = new KubeConfig();
  const caData = Buffer.from(ca).toString('base64');
  kubeConfig.loadFromClusterAndUser({ name: 'e2e', server: url, caData, skipTLSVerify: false }, user);
  return kubeConfig;
}

/** The accounts of a node agent, which may create tokens of the plugin, and of the plugin. */
async function createAccounts(admin: KubeConfig): Promise<void> {
  const core = admin.makeApiClient(CoreV1Api);
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  for (const name of ['agent', 'plugin']) {
    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name } } });
  }
  const rbac = admin.makeApiClient(RbacAuthorizationV1Api);
  const rules = [
    { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: ['plugin'], verbs: ['create'] },
  ];
  await rbac.createNamespacedRole({ namespace, body: { metadata: { name: 'mint' }, rules } });
  await rbac.createNamespacedRoleBinding({
    namespace,
    body: {
      metadata: { name: 'mint' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'mint' },
      subjects: [{ kind: 'ServiceAccount', name: 'agent', namespace }],
    },
  });
}

test.skipIf(!assets)(
  'a kubeconfig works again after a real kube-apiserver came back with a new signing key',
  { timeout: 300_000 },
  async () => {
    const cluster = await startControlPlane(assets ?? '');
    const admin = kubeConfigAs({ name: 'admin', token: cluster.adminToken }, cluster);
    await createAccounts(admin);

    const directory = temporaryDirectory();
    const mount = join(directory, 'projected');
    mkdirSync(mount);
    const volume = new KubeletVolume(mount);
    /** Does what kubelet does: TokenRequest for the agent's own token, then a swap of the volume. */
    const project = async (): Promise<void> => {
      const body = { spec: { audiences: [], expirationSeconds: 3_607 } };
      const core = admin.makeApiClient(CoreV1Api);
      const { status } = await core.createNamespacedServiceAccountToken({ namespace, name: 'agent', body });
      volume.publish({ token: status?.token ?? '', 'ca.crt': cluster.ca });
    };
    await project();

    const tokenFile = join(mount, 'token');
    const agent: User = { name: 'agent', authProvider: { name: 'tokenFile', config: { tokenFile } } };
    const path = join(directory, 'kubeconfig');
    const client = tokenRequestClient({
      namespace,
      serviceAccount: 'plugin',
      kubeConfig: kubeConfigAs(agent, cluster),
    });
    const sink = kubeconfigSink({ path, server: cluster.url, caFile: join(mount, 'ca.crt'), user: 'plugin' });
    const refresher = new TokenRefresher({ client, tokenFile, sinks: [sink], wakeJitterMs: 0 });
    onTestFinished(() => refresher.close());
    await refresher.start();

    const whoAmI = (): Promise<unknown> => {
      const kubeConfig = new KubeConfig();
      kubeConfig.loadFromFile(path);
      const api = kubeConfig.makeApiClient(AuthenticationV1Api);
      return api.createSelfSubjectReview({ body: {} }).then(
        ({ status }) => status?.userInfo?.username,
        (error: unknown) => (error as { code?: unknown }).code,
      );
    };
    expect(await whoAmI()).toBe('system:serviceaccount:end-to-end:plugin');

    await cluster.rotateSigningKey();
    expect(await whoAmI()).toBe(401);
    await project();
    await expect
      .poll(whoAmI, { timeout: 120_000, interval: 250 })
      .toBe('system:serviceaccount:end-to-end:plugin');
  },
);
