/**
 * Which directories have to be listed once more. Two changes within one tick of the clock from which a file system takes its
 * timestamps leave the same signature, and the directory may be listed in between: without a hint about the second one,
 * no later check would find it. So a listing counts only if its signature was old enough (timestamp-proof.ts), or if the
 * directory was listed again `COARSEST_TIMESTAMP_MS` after that signature was first seen.
 */
import { PAUSE, type Effects } from './effects.js';
import { COARSEST_TIMESTAMP_MS, type Moment } from './observation.js';
import { keysThatDiffer, PersistentMap } from './persistent-map.js';
import { isPast } from './timestamp-proof.js';

/** The signatures of directories when they were last listed, by key. */
type Listed = ReadonlyMap<string, string>;

const NOTHING: Listed = PersistentMap.empty<string>();

/** The directories of one target that are not proven to be as they were listed. */
export class ListingProof {
  #listed = NOTHING;
  /** When the signatures were first seen, monotonic ms, the oldest first. */
  readonly #since = new Map<string, number>();

  /** The next directories to list once more. */
  *next(count: number): Iterable<string> {
    let left = count;
    for (const key of this.#since.keys()) {
      if (left === 0) return;
      left -= 1;
      yield key;
    }
  }

  /**
   * Takes the signatures with which the directories were last listed.
   * @param again which of them were listed now.
   */
  *take(listed: Listed, again: Iterable<string>, { monotonic, timestampMs }: Moment): Effects<void> {
    for (const key of keysThatDiffer(this.#listed, listed)) {
      const signature = listed.get(key);
      this.#since.delete(key);
      const isProven = timestampMs !== undefined && signature !== undefined && isPast(signature, timestampMs);
      if (signature !== undefined && !isProven) this.#since.set(key, monotonic);
      yield PAUSE;
    }
    for (const key of again) {
      const since = this.#since.get(key) ?? Infinity;
      if (monotonic - since >= COARSEST_TIMESTAMP_MS) this.#since.delete(key);
    }
    this.#listed = listed;
  }

  /** Nothing is known of the directories any more. */
  forget(): void {
    this.#listed = NOTHING;
    this.#since.clear();
  }
}
