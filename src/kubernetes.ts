/** The entry point "resilient-watcher/kubernetes". What needs `@kubernetes/client-node` loads it when used. */
export { ClosedError } from './core/errors.js';
export { TokenError, type TokenErrorCode } from './core/token-error.js';
export { KubernetesError, type KubernetesErrorCode } from './kubernetes/kubernetes-error.js';
export { WriteError, type WriteErrorCode } from './write/write-error.js';
export {
  parseServiceAccountTokens,
  ServiceAccountTokens,
  type TokenCarrier,
} from './kubernetes/csi-tokens.js';
export { renderKubeconfig, type KubeconfigOptions } from './kubernetes/kubeconfig.js';
export { kubeconfigSink, type KubeconfigSinkOptions } from './kubernetes/kubeconfig-sink.js';
export { TokenFileAuth, withTokenFile, type WithTokenFileOptions } from './kubernetes/token-file-auth.js';
export type { CredentialUse } from './kubernetes/request-credentials.js';
export {
  tokenRequestClient,
  type BoundObjectReference,
  type TokenApi,
  type TokenRequestClientOptions,
} from './kubernetes/token-request-client.js';
export {
  VolumePublisher,
  type PublishedVolume,
  type PublishedVolumeStatus,
  type VolumePublisherEvents,
  type VolumePublisherOptions,
  type VolumePublisherStatus,
} from './kubernetes/volume-publisher.js';
export type { ProducedVolume, VolumeProducer } from './kubernetes/publication.js';
