import { CodedError } from '../core/resilient-error.js';

/** Data from the cluster, kubelet or a kubeconfig cannot be used. The last good state is kept. */
export class KubernetesError extends CodedError<'KubernetesError'> {
  override readonly name = 'KubernetesError';
}
