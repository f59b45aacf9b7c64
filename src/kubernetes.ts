/** The door "resilient-watcher/kubernetes". What needs `@kubernetes/client-node` 1.4 or 2 loads it when used. */
export {
  parseServiceAccountTokens,
  ServiceAccountTokens,
  type TokenCarrier,
} from './kubernetes/csi-tokens.js';
export { renderKubeconfig, type KubeconfigOptions } from './kubernetes/kubeconfig.js';
