import type { ActionUpdate } from './update.js';

/** Something to do when a watched path has changed. */
export interface Action {
  /** For messages and status, as in `"nginx -s reload"`. */
  readonly name: string;
  /** For telemetry: `exec`, `signal`, `webhook`, or a word of your own. Default `custom`. */
  readonly kind?: string;
  /**
   * Runs the action. A rejection means failure, and the action is retried. When `signal` aborts it should stop, and
   * settle when nothing of it is left running: reject, or fulfill if its work is done nevertheless.
   */
  run(update: ActionUpdate, options: { readonly signal: AbortSignal }): Promise<void>;
}
