import { KubeConfig } from '@kubernetes/client-node';
import type { LocalApiServer } from '@resilient-watcher/local-api-server';

export function kubeConfigOf(server: LocalApiServer, token: string): KubeConfig {
  const kubeConfig = new KubeConfig();
  const caData = Buffer.from(server.caPem).toString('base64');
  kubeConfig.loadFromClusterAndUser(
    { name: 'local', server: server.url, caData, skipTLSVerify: false },
    { name: 'me', token },
  );
  return kubeConfig;
}
