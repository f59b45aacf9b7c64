import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node';
import { LocalApiServer } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { startExample } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

test.each(['11h30m', ''])(
  'the kubeconfig of a CNI plugin works again after a rotation of the signing key, with the interval "%s"',
  async (interval) => {
    const server = await LocalApiServer.start();
    onTestFinished(() => server.close());
    server.addServiceAccount('kube-system', 'cni');
    const directory = temporaryDirectory();
    const mount = join(directory, 'serviceaccount');
    mkdirSync(mount);
    const volume = new KubeletVolume(mount);
    const project = async (): Promise<void> => {
      const { token } = await server.mint('kube-system', 'calico-node');
      volume.publish({ token, 'ca.crt': server.caPem, namespace: 'kube-system' });
    };
    await project();
    const path = join(directory, 'calico-kubeconfig');
    const program = startExample('cni-kubeconfig/main.mjs', {
      CALICO_CNI_SERVICE_ACCOUNT: 'cni',
      CNI_TOKEN_REFRESH_INTERVAL: interval,
      HEALTH_PORT: '',
      CNI_KUBECONFIG: path,
      SERVICE_ACCOUNT_DIR: mount,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: new URL(server.url).port,
    });
    /** Who the file speaks for. Whatever moment it is read at, it is a whole kubeconfig. */
    const whoAmI = async (): Promise<unknown> => {
      const kubeConfig = new KubeConfig();
      kubeConfig.loadFromFile(path);
      expect(kubeConfig.getCurrentContext()).toBe('calico-context');
      const api = kubeConfig.makeApiClient(AuthenticationV1Api);
      return api.createSelfSubjectReview({ body: {} }).then(
        ({ status }) => status?.userInfo?.username,
        (error: unknown) => (error as { code?: unknown }).code,
      );
    };

    await expect.poll(() => existsSync(path) || program.output).toBe(true);
    expect(await whoAmI()).toBe('system:serviceaccount:kube-system:cni');
    await server.rotateSigningKey();
    expect(await whoAmI()).toBe(401);
    await project();
    await expect.poll(whoAmI).toBe('system:serviceaccount:kube-system:cni');

    expect(await program.terminated()).toBe(0);
    expect(program.output).not.toContain('eyJ');
  },
);
