import type { CodeOf } from '../core/error-codes.js';
import { CodedError } from '../core/resilient-error.js';

/** An action failed. It is retried. */
export class ActionError extends CodedError<'ActionError'> {
  override readonly name = 'ActionError';
}

/** The error of the action with this name. */
export function actionFailed(
  name: string,
  reason: string,
  cause?: unknown,
  code: CodeOf<'ActionError'> = 'ERR_ACTION_FAILED',
): ActionError {
  const message = `Action ${JSON.stringify(name)} failed: ${reason}`;
  return new ActionError(code, message, cause === undefined ? undefined : { cause });
}
