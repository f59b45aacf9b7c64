/**
 * Whose a failed patch is: what else fails like it.
 *
 * | answer                                                           | whose                                |
 * |------------------------------------------------------------------|--------------------------------------|
 * | 404; 409 or 422 because of the uid                               | nobody's: the pod no longer exists   |
 * | a webhook or a policy denies it; it names the pod; 409           | the pod's                            |
 * | 401, 429, 502, 503, 504; a redirect or a page; no connection     | everybody's: the API server is away  |
 * | 403 by the authorizer; 500, as when a webhook cannot be reached; | the namespace's, as roles and most   |
 * | none within the time for a patch; anything else                  | webhooks are                         |
 */
import { apiFailureOf, type ApiFailure } from 'resilient-watcher/internal';

export type Whose = 'nobody' | 'pod' | 'namespace' | 'everybody';

/** No answer came in time: perhaps from a webhook that the API server waits for. */
export class PatchTimeout extends Error {}

/** What the API server says when a webhook or a policy denies a request, whatever the status is. */
const DENIED = /\bdenied (?:the )?request\b|\bdoes not support dry run\b/;

const AWAY: readonly number[] = [401, 429, 502, 503, 504];

/** @param name the name of the pod. */
export function whoseIs(error: unknown, name: string): Whose {
  const failure = apiFailureOf(error);
  if (!failure) return error instanceof PatchTimeout ? 'namespace' : 'everybody';
  const { status, message } = failure;
  if (DENIED.test(message)) return 'pod';
  if (status < 400 || AWAY.includes(status)) return 'everybody';
  if (isGone(failure)) return 'nobody';
  if (status === 403 && message.includes('cannot patch')) return 'namespace';
  return status === 409 || message.includes(`"${name}"`) ? 'pod' : 'namespace';
}

/** Whether a webhook was not asked because of the dry run, so that the answer says nothing about a patch. */
export function isDryRunRefused(error: unknown): boolean {
  return apiFailureOf(error)?.message.includes('does not support dry run') === true;
}

function isGone({ status, message, body }: ApiFailure): boolean {
  // The 404 of a proxy is no object.
  if (status === 404) return typeof body === 'object';
  return (status === 409 || status === 422) && /\buid\b/i.test(message);
}
