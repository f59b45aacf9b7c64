/** The reference reader, which reads the file every 50 ms. No program has to see a state that it cannot see. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { sha256 } from './contents.js';

const PERIOD_MS = 50;

/** Reads until `signal` aborts, and calls `onDigest` with what it has read twice in a row, which is complete. */
export async function witness(
  path: string,
  onDigest: (digest: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last: string | undefined;
  let shown: string | undefined;
  while (!signal.aborted) {
    // A file that cannot be read is not a state.
    const digest = await readFile(path).then(sha256, () => undefined);
    if (digest !== undefined && digest === last && digest !== shown) onDigest((shown = digest));
    last = digest;
    await sleep(PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}
