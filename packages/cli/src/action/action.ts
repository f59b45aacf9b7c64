import { CodedError, recognize, type CodeOf } from 'resilient-watcher/internal';

import type { ActionUpdate } from './action-update.js';

/** Something to do when a watched path has changed. */
export interface Action {
  /** For messages, status and metrics, which others may read, as in `nginx`. */
  readonly name: string;
  /** The kind in telemetry: `exec`, `signal`, `webhook`, or a word of your own. Default `custom`. */
  readonly kind?: string;
  /** Looks at what the action may need to know before the first change. A failure is ignored. */
  prepare?(): Promise<void>;
  /**
   * Runs the action. If it rejects, the action has failed and is retried. When `signal` aborts, it should stop, and
   * settle once nothing is left running: reject, or fulfill if its work was completed nevertheless.
   */
  run(update: ActionUpdate, options: { readonly signal: AbortSignal }): Promise<void>;
}

/** An action failed. It is retried. */
export class ActionError extends CodedError<'ActionError'> {
  override readonly name = 'ActionError';
}
recognize(ActionError, 'ActionError');

/** The error of the action with this name. */
export function actionFailed(
  name: string,
  reason: string,
  cause?: unknown,
  code: CodeOf<'ActionError'> = 'ERR_ACTION_FAILED',
): ActionError {
  const message = `Action ${JSON.stringify(name)} failed: ${reason}`;
  return new ActionError(code, message, { cause });
}
