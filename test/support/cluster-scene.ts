import { writeFileSync } from 'node:fs';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { KubeConfig } from '@kubernetes/client-node';
import { renderKubeconfig } from 'resilient-watcher/kubernetes';
import { LocalApiServer, type LocalApiServerOptions } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

import { temporaryDirectory } from './temporary-directory.js';

/** An API server, and the volume with the token and CA that kubelet gives the pod `ci/builder`. */
export async function clusterScene(options?: LocalApiServerOptions): Promise<ClusterScene> {
  const server = await LocalApiServer.start(options);
  onTestFinished(() => server.close());
  const directory = temporaryDirectory();
  const mount = join(directory, 'projected');
  mkdirSync(mount);
  const volume = new KubeletVolume(mount);
  const scene: ClusterScene = {
    server,
    directory,
    tokenFile: join(mount, 'token'),
    caFile: join(mount, 'ca.crt'),
    async project() {
      const { token } = await server.mint('ci', 'builder');
      // With a line break, as some tools write it.
      volume.publish({ token: `${token}\n`, 'ca.crt': server.caPem });
      return token;
    },
    inPod() {
      const kubeConfig = new KubeConfig();
      const tokenFile = { name: 'tokenFile', config: { tokenFile: scene.tokenFile } };
      kubeConfig.loadFromClusterAndUser(
        { name: 'inCluster', server: server.url, caFile: scene.caFile, skipTLSVerify: false },
        { name: 'inClusterUser', authProvider: tokenFile },
      );
      return kubeConfig;
    },
    kubeconfigFile(token) {
      const path = join(directory, 'kubeconfig');
      writeFileSync(path, renderKubeconfig({ server: server.url, caData: server.caPem, token }));
      return path;
    },
  };
  await scene.project();
  return scene;
}

export interface ClusterScene {
  readonly server: LocalApiServer;
  readonly directory: string;
  readonly tokenFile: string;
  readonly caFile: string;
  /** Projects a new token, as kubelet does; resolves to it. */
  project(): Promise<string>;
  /** What `loadFromCluster()` makes in that pod. */
  inPod(): KubeConfig;
  /** A kubeconfig with this token; the path of it. */
  kubeconfigFile(token: string): string;
}
