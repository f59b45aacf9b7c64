/** The entry point "resilient-watcher/kubernetes". `@kubernetes/client-node` is loaded on first use. */
import './index.js';

export type { ClusterClientOptions } from './kubernetes/cluster-access.js';
export { clusterClient, type ClusterClient, type ClusterRequest } from './kubernetes/cluster-client.js';
export { KubernetesError } from './kubernetes/kubernetes-error.js';
export { renderKubeconfig, type KubeconfigOptions } from './kubernetes/kubeconfig.js';
export { kubeconfigSink, type KubeconfigSinkOptions } from './kubernetes/kubeconfig-sink.js';
export {
  withTokenFile,
  type TokenFileAuth,
  type WithTokenFileOptions,
} from './kubernetes/token-file-auth.js';
export { tokenRequestClient, type TokenRequestClientOptions } from './kubernetes/token-request-client.js';
