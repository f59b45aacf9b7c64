import { redact } from '../core/redaction.js';
import { apiFailureOf, otherFailure } from './api-failure.js';
import { KubernetesError } from './kubernetes-error.js';

/**
 * A failed request as an error of the library.
 * @param what completes "Cannot …", such as `list and watch pods in shop`.
 */
export function clusterFailure(thrown: unknown, what: string): KubernetesError {
  if (thrown instanceof KubernetesError) return thrown;
  const failure = apiFailureOf(thrown);
  const text = failure ? `${failure.message} (${failure.status})` : otherFailure(thrown).reason;
  const isForbidden = failure?.status === 403;
  const advice = isForbidden ? '; grant it by RBAC' : '';
  const message = `Cannot ${what}: ${redact(text)}${advice}`;
  const code = isForbidden ? 'ERR_CLUSTER_FORBIDDEN' : 'ERR_CLUSTER_REQUEST';
  return new KubernetesError(code, message, { cause: thrown });
}
