/**
 * Whether a write shows in the signature of a file that has been read. Two writes within one tick of the clock from which a
 * file system takes its timestamps leave the same signature, and a file may be read in between. What counts is `ctime`, which
 * no program can choose:
 *
 * | when the file is read, its `ctime` is                                       | every later write                         |
 * |-----------------------------------------------------------------------------|-------------------------------------------|
 * | before another one that its file system has shown already                   | shows: its clock is past that tick        |
 * | more than `COARSEST_TIMESTAMP_MS` ago by the clock of the kernel, from      | shows: no local file system has a coarser |
 * | which local file systems take their timestamps                              | clock                                     |
 * | the newest that was seen, and recent                                        | may not show: the file is read once more  |
 * | in the future: the clock was set back                                       | the same                                  |
 * | that of a server, or the clock is not known                                 | the same                                  |
 *
 * What was shown counts for one file system, since each rounds timestamps in its own way, and not if it is in the future:
 * the clock will pass there once more.
 */
import { COARSEST_TIMESTAMP_MS } from './observation.js';
import { changedAt, deviceIn } from './file-identity.js';

const NS_PER_MS = 1e6;

/** What the file systems of a target have shown of their clocks. */
export class TimestampProof {
  /** The newest timestamps, by device, ns. */
  readonly #newest = new Map<string, number>();
  #now = -Infinity;

  /**
   * A check begins.
   * @param timestampMs see `Moment`.
   */
  begin(timestampMs: number | undefined): void {
    this.#now = timestampMs === undefined ? -Infinity : timestampMs * NS_PER_MS;
    for (const [device, newest] of this.#newest) if (newest > this.#now) this.#newest.delete(device);
  }

  /** The file system has shown this signature. */
  saw(signature: string): void {
    const changed = changedAt(signature);
    if (changed > this.#now) return;
    const device = deviceIn(signature);
    if (changed > (this.#newest.get(device) ?? -Infinity)) this.#newest.set(device, changed);
  }

  /** Whether every write shows that follows a reading of the file after this check began. */
  isProven(signature: string): boolean {
    if (isBefore(signature, this.#now)) return true;
    return changedAt(signature) < (this.#newest.get(deviceIn(signature)) ?? -Infinity);
  }
}

/**
 * Whether every change shows that comes after this time.
 * @param timestampMs see `Moment`.
 */
export function isPast(signature: string, timestampMs: number): boolean {
  return isBefore(signature, timestampMs * NS_PER_MS);
}

function isBefore(signature: string, now: number): boolean {
  return changedAt(signature) < now - COARSEST_TIMESTAMP_MS * NS_PER_MS;
}
