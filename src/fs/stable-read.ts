/**
 * Reads a target once, without watching it.
 *
 * | an attempt finds                              | then                                                         |
 * |-----------------------------------------------|--------------------------------------------------------------|
 * | files                                         | that is the snapshot                                         |
 * | no target                                     | missing, after `MISSING_ATTEMPTS`                            |
 * | a target that is probably being swapped       | missing, once nothing has changed there for `LONGEST_GAP_MS` |
 * | files that were replaced while they were read | another attempt                                              |
 * | a file that was written while it was read     | other attempts, for `LONGEST_WRITE_MS` after the first one   |
 * | something unreadable                          | `TargetError`                                                |
 */
import { Backoff } from '../core/scheduling/backoff.js';
import type { Clock } from '../core/ports/clock.js';
import type { Random } from '../core/ports/random.js';
import { sleep } from '../core/scheduling/sleep.js';
import { nextSlice, run } from '../core/scheduling/steps.js';
import type { ReadingCalls } from './calls.js';
import { Disk, noAnswers } from './disk.js';
import { Mounts } from './mounts.js';
import type { Target } from './observation.js';
import { FileSnapshot, MissingSnapshot, type Snapshot } from './snapshot.js';
import { TargetError } from './target-error.js';

/** What a read is made with. */
export interface ReadingPorts {
  readonly fs: ReadingCalls;
  readonly clock: Clock;
  readonly random: Random;
}

/** A target that is not found in this many attempts, over some 10 ms, is missing. */
const MISSING_ATTEMPTS = 5;

/** How long a publisher may have to wait for a CPU between removing `..data` and creating it again, ms. */
const LONGEST_GAP_MS = 500;

/** How long a file that is written all the time, such as a log, is read again, at least once, ms. */
const LONGEST_WRITE_MS = 500;

/** Within this time, some attempt finds the target at rest, even if it exists only a tenth of the time, ms. */
const MAX_WAIT_MS = 10_000;

const FIRST_DELAY_MS = 1;
const LONGEST_DELAY_MS = 20;

/**
 * Reads the current state of a target, however often it is replaced meanwhile.
 * @throws {TargetError} when it cannot be read, or is replaced during every attempt for `MAX_WAIT_MS` (ERR_TARGET_IO).
 */
export async function stableRead(target: Target, { fs, clock, random }: ReadingPorts): Promise<Snapshot> {
  const backoff = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_DELAY_MS, random });
  const end = clock.monotonic() + MAX_WAIT_MS;
  /** When the first attempt ended, which may have taken long. */
  let firstTriedAt: number | undefined;
  for (const path of target.paths) await Mounts.of(fs).ask(path);
  /** Since when nothing is there and nothing has changed there. */
  let absence = { changedNs: -1n, attempts: 0, since: end };
  do {
    // A program that reads again and again must not starve its timers.
    await run(nextSlice());
    const disk = new Disk(fs, Mounts.of(fs), clock, noAnswers());
    const seen = await run(target.look('all', disk));
    if (seen.kind === 'found' && seen.unreadable?.code === 'ERR_TARGET_DIRECTORY') throw seen.unreadable;
    const now = clock.monotonic();
    const isLate = now - (firstTriedAt ??= now) >= LONGEST_WRITE_MS;
    if (seen.kind === 'found' && (isLate || isSteady(seen.snapshot))) return seen.snapshot;
    if (seen.kind === 'unreadable') throw seen.error;
    if (seen.kind === 'missing') {
      const { isGap, changedNs } = seen;
      if (changedNs !== absence.changedNs) absence = { changedNs, attempts: 0, since: now };
      absence.attempts += 1;
      const waited = now - absence.since;
      if (absence.attempts >= MISSING_ATTEMPTS && waited >= (isGap ? LONGEST_GAP_MS : 0))
        return new MissingSnapshot(target.path);
    }
    await sleep(clock, backoff.next());
  } while (clock.monotonic() < end);
  throw new TargetError(
    'ERR_TARGET_IO',
    target.path,
    `Cannot read "${target.path}": it was replaced during every attempt for ${MAX_WAIT_MS / 1_000} s`,
  );
}

/** Whether no file changed while it was read. */
function isSteady({ files }: Snapshot): boolean {
  for (const file of files.values()) if (!FileSnapshot.stampOf(file).isSteady) return false;
  return true;
}
