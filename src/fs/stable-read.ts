import { basename, dirname } from 'node:path';

import { Backoff } from '../core/backoff.js';
import { TargetError } from './target-error.js';
import { signatureOf } from './file-identity.js';
import { type ResolvedChain } from './link-chain.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import { Observer } from './observer.js';
import type { Target } from './observation.js';
import type { Snapshot } from './snapshot.js';
import { MissingSnapshot } from './snapshot.js';
import { sleep } from '../core/sleep.js';
import { isUserVisible } from './volume-layout.js';

/** Ports of a read. */
export interface ReadingPorts {
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly random: Random;
}

/** What is missing in this many attempts, over some 10 ms, is missing. */
const MISSING_ATTEMPTS = 5;

/** How long a publisher may wait for a CPU between removing `..data` and creating it again, ms. */
const LONGEST_GAP_MS = 500;

/** Within this time some attempt meets the target at rest, even if it is there only a tenth of the time, ms. */
const MAX_WAIT_MS = 10_000;

const FIRST_DELAY_MS = 1;
const LONGEST_DELAY_MS = 20;

/**
 * What the target is now, all of it at one instant, however often it is replaced meanwhile.
 *
 * | an attempt finds                                      | then                                      |
 * |-------------------------------------------------------|-------------------------------------------|
 * | files that stood still                                | that is the snapshot                      |
 * | files that moved                                      | next attempt                              |
 * | no target                                             | missing, after `MISSING_ATTEMPTS`         |
 * | a volume without its revision, as it was before       | missing, after `LONGEST_GAP_MS`           |
 * | the same, but its directory changed since             | it is being swapped: next attempt         |
 * | something unreadable                                  | `TargetError`                             |
 *
 * @throws {TargetError} when it cannot be read, or does not stand still for `MAX_WAIT_MS` (ERR_TARGET_IO).
 */
export async function stableRead(target: Target, { fs, clock, random }: ReadingPorts): Promise<Snapshot> {
  const backoff = new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: LONGEST_DELAY_MS, random });
  const observer = new Observer(target, fs);
  // Finds out whether it may be read without the thread pool, which takes ten times as long.
  await observer.resolve();
  const end = clock.monotonic() + MAX_WAIT_MS;
  let absence: Absence | undefined;
  do {
    const seen = await observer.observe(clock.monotonic());
    if (seen.kind === 'found') return seen.snapshot;
    if (seen.kind === 'unreadable') throw seen.error;
    if (seen.kind === 'missing') {
      absence = await absenceAt(seen.chain, absence, fs, clock.monotonic());
      if (isMissing(absence, clock.monotonic())) return new MissingSnapshot(target.path);
    } else absence = undefined;
    await sleep(clock, backoff.next());
  } while (clock.monotonic() < end);
  throw new TargetError(
    'ERR_TARGET_IO',
    target.path,
    `Cannot read "${target.path}": it was replaced during every attempt for ${MAX_WAIT_MS / 1_000} s`,
  );
}

/** What was missing at each attempt since a moment. */
interface Absence {
  /**
   * The signature of the volume's directory, if the volume has no revision: equal signatures mean that there was no swap.
   */
  readonly directory: string | undefined;
  readonly attempts: number;
  /** Monotonic ms. */
  readonly since: number;
}

async function absenceAt(
  { end }: ResolvedChain,
  before: Absence | undefined,
  fs: FileSystem,
  now: number,
): Promise<Absence> {
  const directory = await signatureOfVolume(end, fs);
  const isSame = before !== undefined && before.directory === directory;
  return isSame ? { ...before, attempts: before.attempts + 1 } : { directory, attempts: 1, since: now };
}

/** The signature of the directory in which a swap would show; undefined if there is no volume. */
async function signatureOfVolume(end: ResolvedChain['end'], fs: FileSystem): Promise<string | undefined> {
  // The volume's directory is there without `..data`, or the path leads to the missing target of `..data`.
  const isGap = end.kind === 'found' || (end.kind === 'missing' && !isUserVisible(basename(end.path)));
  if (!isGap) return undefined;
  try {
    return signatureOf(await fs.lstat(end.kind === 'found' ? end.path : dirname(end.path)));
  } catch {
    return undefined;
  }
}

function isMissing({ directory, attempts, since }: Absence, now: number): boolean {
  return attempts >= MISSING_ATTEMPTS && now - since >= (directory === undefined ? 0 : LONGEST_GAP_MS);
}
