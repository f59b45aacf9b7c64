import { ResilientError } from '../core/resilient-error.js';

/** Why something from the cluster, kubelet or a kubeconfig cannot be used. */
export type KubernetesErrorCode =
  /** A kubeconfig cannot be read, or lacks something that is needed to reach a cluster. */
  | 'ERR_KUBECONFIG'
  /** `@kubernetes/client-node` is not installed, or its version is not supported. */
  | 'ERR_KUBERNETES_CLIENT'
  /** The certificates of the cluster's authority cannot be read. */
  | 'ERR_KUBECONFIG_CA'
  /** The tokens that kubelet sent cannot be parsed. */
  | 'ERR_CSI_TOKENS'
  /** kubelet sent no token for this audience: the CSIDriver has to be changed. */
  | 'ERR_CSI_AUDIENCE'
  /** The target path is not a directory to which a volume can be published. */
  | 'ERR_CSI_TARGET'
  /** The contents of a volume could not be produced; `cause` is what was thrown. */
  | 'ERR_CSI_PRODUCE';

/** Something that the cluster, kubelet or a kubeconfig provided cannot be used. The last good state is kept. */
export class KubernetesError extends ResilientError {
  override readonly name = 'KubernetesError';
  readonly code: KubernetesErrorCode;

  constructor(code: KubernetesErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
