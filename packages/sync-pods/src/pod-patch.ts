import type { Clock } from 'resilient-watcher';
import { statusOf, withDeadline } from 'resilient-watcher/internal';
import type { ClusterClient } from 'resilient-watcher/kubernetes';

import { ANNOTATION, type MountingPod } from './mounted-objects.js';
import { PatchTimeout } from './patch-refusal.js';

/** The name in `managedFields`. */
const FIELD_MANAGER = 'resilient-watcher';

const TIMEOUT_MS = 10_000;

/**
 * Sets the annotation of a pod.
 * @param isDryRun the API server answers as if, and changes nothing.
 */
export async function patchPod(
  client: ClusterClient,
  { namespace, name, uid }: MountingPod,
  value: string,
  { clock, signal, isDryRun }: { clock: Clock; signal: AbortSignal; isDryRun: boolean },
): Promise<void> {
  const query = new URLSearchParams({ fieldManager: FIELD_MANAGER, ...(isDryRun && { dryRun: 'All' }) });
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  await withDeadline(
    (inTime) =>
      client.request({
        method: 'PATCH',
        path: `${path}?${query.toString()}`,
        // The uid keeps the patch from a new pod of the same name.
        body: { metadata: { uid, annotations: { [ANNOTATION]: value } } },
        type: 'application/merge-patch+json',
        accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
        signal: inTime,
      }),
    { clock, timeoutMs: TIMEOUT_MS, signal, late: () => new PatchTimeout(`it took over ${TIMEOUT_MS} ms`) },
  );
}

/** Whether we may patch pods in the namespace; a failed request forbids nothing unless it is itself forbidden. */
export async function mayPatchPods(
  client: ClusterClient,
  namespace: string,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<boolean> {
  const resourceAttributes = { namespace, verb: 'patch', resource: 'pods' };
  try {
    const answer = await withDeadline(
      (inTime) =>
        client.request({
          method: 'POST',
          path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SelfSubjectAccessReview',
            spec: { resourceAttributes },
          },
          signal: inTime,
        }),
      { clock, timeoutMs: TIMEOUT_MS, signal, late: () => new PatchTimeout(`it took over ${TIMEOUT_MS} ms`) },
    );
    const { status } = Object(answer) as { status?: unknown };
    return (Object(status) as { allowed?: unknown }).allowed !== false;
  } catch (error) {
    return statusOf(error) !== 403;
  }
}
