import { apiFailureOf, otherFailure, redact } from 'resilient-watcher/internal';
import { KubernetesError } from 'resilient-watcher/kubernetes';

interface FailedRequest {
  /** Completes "Cannot …", such as `list and watch pods in shop`. */
  readonly what: string;
  /** Whether it may succeed in a moment, so that no advice is given. */
  readonly mayBePassing: boolean;
  /** Whether a webhook or a policy refuses one pod, which is no matter of RBAC. */
  readonly isOfPod: boolean;
}

/** A failed request as an error of the library. */
export function clusterFailure(
  thrown: unknown,
  { what, mayBePassing, isOfPod }: FailedRequest,
): KubernetesError {
  const failure = apiFailureOf(thrown);
  const isUnanswered = thrown instanceof KubernetesError && thrown.code === 'ERR_CLUSTER_REQUEST';
  if (!failure && !isUnanswered && thrown instanceof KubernetesError) return thrown;
  const { reason } = otherFailure(isUnanswered ? thrown.cause : thrown);
  const text = failure ? `${failure.message} (${failure.status})` : reason;
  const isForbidden = failure?.status === 403 && !isOfPod;
  const advice = isForbidden && !mayBePassing ? '; grant it by RBAC' : '';
  const message = `Cannot ${what}: ${redact(text)}${advice}`;
  const code = isForbidden ? 'ERR_CLUSTER_FORBIDDEN' : 'ERR_CLUSTER_REQUEST';
  return new KubernetesError(code, message, { cause: thrown });
}
