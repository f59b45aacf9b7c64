import { CodedError, recognize } from '../core/errors/resilient-error.js';

/** Data from the cluster, kubelet or a kubeconfig cannot be used. The last good state is kept. */
export class KubernetesError extends CodedError<'KubernetesError'> {
  override readonly name = 'KubernetesError';
}
recognize(KubernetesError, 'KubernetesError');

/** A kubeconfig, or what it names, cannot be used. */
export function kubeconfigError(message: string, cause?: unknown): KubernetesError {
  return new KubernetesError('ERR_KUBECONFIG', message, { cause });
}

/** There is no API server in the environment of the process, which does not change: no attempt will succeed. */
export class NotInPodError extends KubernetesError {
  constructor(message: string) {
    super('ERR_KUBECONFIG', message);
  }
}
recognize(NotInPodError, 'NotInPodError');
