import { Backoff } from './backoff.js';
import { TargetError } from './errors.js';
import type { Clock, FileSystem, Random } from './ports.js';
import type { Target } from './sighting.js';
import type { Snapshot } from './snapshot.js';
import { MissingSnapshot } from './snapshot.js';
import { sleep } from './sleep.js';
import { runAsync } from './steps.js';

/** What it takes to wait for a target that moves. */
export interface ReadingPorts {
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly random: Random;
}

/** A target that is swapped by removing and linking anew is missing for a moment: then it is looked for so often. */
const LOOKS_AT_NOTHING = 5;

/** Each of these has met swap after swap; at the tenth the waits have grown to the longest. */
const MAX_LOOKS = 50;

const FIRST_DELAY_MS = 1;
const LONGEST_DELAY_MS = 20;

/**
 * What the target is now, all of it at one instant.
 * @throws {TargetError} when it cannot be read, or never stands still (ERR_TARGET_IO).
 */
export async function readTarget(target: Target, { fs, clock, random }: ReadingPorts): Promise<Snapshot> {
  const backoff = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_DELAY_MS, random });
  let nothing = 0;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const seen = await runAsync(target.look(), fs);
    if (seen.kind === 'found' && seen.snapshot.kind !== 'directory') return seen.snapshot;
    if (seen.kind === 'trouble') throw seen.error;
    // In the gap of a swap a volume is a directory with links that lead nowhere.
    if (seen.kind === 'found' || seen.kind === 'missing') {
      nothing += 1;
      if (seen.kind === 'found' && (seen.files.size > 0 || nothing === LOOKS_AT_NOTHING))
        return seen.snapshot;
      if (nothing === LOOKS_AT_NOTHING) return new MissingSnapshot(target.path);
    }
    await sleep(clock, backoff.next());
  }
  throw new TargetError(
    'ERR_TARGET_IO',
    target.path,
    `Cannot read "${target.path}": it was replaced during each of ${MAX_LOOKS} attempts`,
  );
}
