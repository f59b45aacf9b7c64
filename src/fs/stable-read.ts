import { basename } from 'node:path';

import { Backoff } from '../core/backoff.js';
import { TargetError } from '../core/errors.js';
import type { LinkChain } from './link-chain.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { Observer } from './observer.js';
import type { Target } from './observation.js';
import type { Snapshot } from './snapshot.js';
import { MissingSnapshot } from './snapshot.js';
import { sleep } from '../core/sleep.js';
import { isUserVisible } from './volume-layout.js';

/** What it takes to wait for a target that moves. */
export interface ReadingPorts {
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly random: Random;
}

/** What is not there at so many looks, over some 10 ms, is missing. */
const LOOKS_AT_NOTHING = 5;

/** In the gap between removing `..data` and linking it anew a publisher may have to wait for a CPU, ms. */
const LONGEST_GAP_MS = 500;

/** Each of these has met swap after swap; at the tenth the waits have grown to the longest. */
const MAX_LOOKS = 50;

const FIRST_DELAY_MS = 1;
const LONGEST_DELAY_MS = 20;

/**
 * What the target is now, all of it at one instant.
 * @throws {TargetError} when it cannot be read, or never stands still (ERR_TARGET_IO).
 */
export async function stableRead(target: Target, { fs, clock, random }: ReadingPorts): Promise<Snapshot> {
  const backoff = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_DELAY_MS, random });
  const observer = new Observer(target, fs);
  // Tells whether it may be read without the thread pool, which takes ten times as long.
  await observer.resolve();
  let nothing = 0;
  let missingSince: number | undefined;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const seen = await observer.observe(clock.monotonic());
    if (seen.kind === 'found') return seen.snapshot;
    if (seen.kind === 'unreadable') throw seen.error;
    if (seen.kind === 'missing') {
      nothing += 1;
      missingSince ??= clock.monotonic();
      const graceMs = isBetweenRevisions(seen.chain) ? LONGEST_GAP_MS : 0;
      if (nothing >= LOOKS_AT_NOTHING && clock.monotonic() - missingSince >= graceMs) {
        return new MissingSnapshot(target.path);
      }
    } else {
      // It moves, so it is there.
      nothing = 0;
      missingSince = undefined;
    }
    await sleep(clock, backoff.next());
  }
  throw new TargetError(
    'ERR_TARGET_IO',
    target.path,
    `Cannot read "${target.path}": it was replaced during each of ${MAX_LOOKS} attempts`,
  );
}

/** It stands there, or in it, but what `..data` leads to does not. */
function isBetweenRevisions({ end }: LinkChain): boolean {
  return end.kind === 'found' || (end.kind === 'missing' && !isUserVisible(basename(end.path)));
}
