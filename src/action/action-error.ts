import { ResilientError } from '../core/resilient-error.js';

/** Why an action did not succeed. */
export type ActionErrorCode =
  /** It failed, or exited with a code other than 0. */
  | 'ERR_ACTION_FAILED'
  /** It took longer than `timeoutMs` and was stopped. */
  | 'ERR_ACTION_TIMEOUT'
  /** The process to signal does not exist, or may not be signalled. */
  | 'ERR_ACTION_PROCESS'
  /** The webhook was not reached, or answered with another status than expected. */
  | 'ERR_ACTION_WEBHOOK';

/** An action failed. It is retried. */
export class ActionError extends ResilientError {
  override readonly name = 'ActionError';
  readonly code: ActionErrorCode;

  constructor(code: ActionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
