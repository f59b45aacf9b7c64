import { execFileSync } from 'node:child_process';

import { KubeConfig } from '@kubernetes/client-node';

/** The settings of the test, from environment variables. */
export interface ClusterSettings {
  readonly kubeConfig: KubeConfig;
  readonly image: string;
  readonly hostNetwork: boolean;
  /** Whether a pod may write to a directory of its node. */
  readonly hostPath: boolean;
  /** The image of `csi-node-driver-registrar`; undefined: no CSI driver, which needs a privileged pod. */
  readonly registrar: string | undefined;
  /** A shell command that restarts the kubelet of the observers' node; undefined: it is not restarted. */
  readonly restartKubelet: string | undefined;
  /** Replace the images that the manifests of `deploy/` name. */
  readonly nginx: string | undefined;
  readonly prometheus: string | undefined;
}

/** Reads the settings; undefined, with the reason printed, if there is no cluster or no image. */
export function clusterSettings(env: NodeJS.ProcessEnv = process.env): ClusterSettings | undefined {
  const image = env['E2E_IMAGE'];
  const path = env['KUBECONFIG'];
  if (!image || !path) {
    console.warn(`Skipped: no cluster: ${path ? 'E2E_IMAGE' : 'KUBECONFIG'} is not set`);
    return undefined;
  }
  // An empty variable is as good as none.
  const setting = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(path);
  return {
    kubeConfig,
    image,
    hostNetwork: env['E2E_HOST_NETWORK'] === '1',
    hostPath: env['E2E_HOST_PATH'] === '1',
    registrar: setting('E2E_CSI_REGISTRAR'),
    restartKubelet: setting('E2E_RESTART_KUBELET'),
    nginx: setting('E2E_NGINX_IMAGE'),
    prometheus: setting('E2E_PROMETHEUS_IMAGE'),
  };
}

/** Restarts kubelet, if the settings say how; whether it did. */
export function restartKubelet({ restartKubelet: command }: ClusterSettings): boolean {
  if (command === undefined) return false;
  execFileSync('sh', ['-c', command], { stdio: 'inherit' });
  return true;
}
