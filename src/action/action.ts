import type { ActionUpdate } from './update.js';

/** Something to do when a watched path has changed. */
export interface Action {
  /** For messages and status, as in `"nginx -s reload"`. */
  readonly name: string;
  /** For telemetry: `exec`, `signal`, `webhook`, or a word of your own. Default `custom`. */
  readonly kind?: string;
  /**
   * Does it. Rejects when it failed: then it is tried again. When `signal` aborts it should stop, and settle only when
   * nothing of it is left running.
   */
  run(update: ActionUpdate, options: { readonly signal: AbortSignal }): Promise<void>;
}
