/**
 * Decides what a failed patch says about other patches: whether those of the pod, of the namespace or of everything
 * would fail, too. Messages are not evaluated, because they quote names and webhooks may write anything; only the
 * status, its reason and its details are.
 *
 * | answer                                                               | what fails like it                   |
 * |----------------------------------------------------------------------|--------------------------------------|
 * | 404; 422 because of the uid                                          | nothing: the pod no longer exists    |
 * | 403, and the API server says that we may not patch in this namespace | the namespace                        |
 * | its details name the pod; 403; 409                                   | the pod                              |
 * | 401, 429, 502, 503, 504 of the API server or a proxy; a redirect or  | everything: the API server is away   |
 * | a page; no connection                                                |                                      |
 * | any other 4xx, or one of these of a webhook, which gives no reason   | the pod                              |
 * | 500, as when a webhook cannot be reached; none within the time for a | the namespace, as most webhooks are  |
 * | patch; anything else                                                 | for one                              |
 */
import { apiFailureOf, type ApiFailure } from 'resilient-watcher/internal';

export type Whose = 'nobody' | 'pod' | 'namespace' | 'everybody';

/** No answer came in time: perhaps from a webhook that the API server waits for. */
export class PatchTimeout extends Error {}

const AWAY: readonly number[] = [401, 429, 502, 503, 504];

/** @param isAllowed asks the API server whether we may patch pods in the namespace. */
export async function whoseIs(
  error: unknown,
  { namespace, pod }: { readonly namespace: string; readonly pod: string },
  isAllowed: (namespace: string) => Promise<boolean>,
): Promise<Whose> {
  const failure = apiFailureOf(error);
  if (!failure) return error instanceof PatchTimeout ? 'namespace' : 'everybody';
  const { status } = failure;
  const { kind, reason, name, fields } = statusIn(failure);
  // The 404 of a proxy is no object.
  if (status === 404 && typeof failure.body === 'object') return 'nobody';
  if (status === 422 && fields.includes('metadata.uid')) return 'nobody';
  // The answers of an authorizer and of an admission plugin are alike.
  if (status === 403) return (await isAllowed(namespace)) ? 'pod' : 'namespace';
  if (status === 409 || name === pod) return 'pod';
  const isOfWebhook = kind === 'Status' && reason === undefined;
  if (status < 400 || (AWAY.includes(status) && !isOfWebhook)) return 'everybody';
  return status !== 500 && kind === 'Status' ? 'pod' : 'namespace';
}

/** Whether a webhook was not asked because of the dry run, so that the answer says nothing about a patch. */
export function isDryRunRefused(error: unknown): boolean {
  const failure = apiFailureOf(error);
  return failure?.status === 400 && statusIn(failure).reason === 'BadRequest';
}

/** What a `metav1.Status` says. */
function statusIn({ body }: ApiFailure): {
  readonly kind: unknown;
  readonly reason: unknown;
  readonly name: unknown;
  readonly fields: readonly unknown[];
} {
  const { kind, reason, details } = Object(body) as { kind?: unknown; reason?: unknown; details?: unknown };
  const { name, causes } = Object(details) as { name?: unknown; causes?: unknown };
  const fields = Array.isArray(causes)
    ? causes.map((cause) => (Object(cause) as { field?: unknown }).field)
    : [];
  return { kind, reason: reason === '' ? undefined : reason, name, fields };
}
