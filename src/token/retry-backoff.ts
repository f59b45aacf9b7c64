import { Backoff } from '../core/backoff.js';
import type { Random } from '../core/random.js';

/** The options of a refresher from which the delays after failures are made. */
export interface RetryDelays {
  readonly retryDelayMs: number;
  readonly maxRetryDelayMs: number;
  readonly random: Random;
}

/** The delays after failures of a request, a sink or a watcher. */
export function retryBackoff({ retryDelayMs, maxRetryDelayMs, random }: RetryDelays): Backoff {
  return new Backoff({ firstDelayMs: retryDelayMs, maxDelayMs: maxRetryDelayMs, random });
}
