/**
 * The pods whose annotation has to change: one entry for each, with the newest change.
 *
 * | entry       | what happens                                    | next                                             |
 * |-------------|-------------------------------------------------|--------------------------------------------------|
 * | none        | an object of the pod changes                    | waiting: for its turn, or for its time           |
 * | waiting     | another change                                  | waiting, with the time of the newer change       |
 * | waiting     | `maxDelayMs` have passed                        | none: kubelet has delivered (`onBehind`)         |
 * | waiting     | it is due, and the rate allows a patch          | sent                                             |
 * | waiting     | another replica has set the annotation          | as if it had been patched here                   |
 * | sent        | the patch succeeds                              | none; repeating after an interruption            |
 * | sent        | another change                                  | waiting, once the patch has ended                |
 * | sent        | the pod is gone (404, 409)                      | none                                             |
 * | sent        | the patch fails                                 | waiting; after 429, 5xx and no answer all wait   |
 * | repeating   | 2, 10, 30 and 60 s after the change             | sent, after all entries that are waiting         |
 *
 * kubelet's watch of an object has a new version long before a patch of ours makes it sync the pod, except after the API
 * server was away: each watch of kubelet returns on its own, up to 60 s after ours. So a patch is repeated if the object
 * changed within a minute after such an interruption. The value tells the repetitions apart (`<digest>`, `<digest>.1`, …),
 * because only a changed value is a change. Patches that were in flight when one met an outage count as the same failure.
 */
import type { Clock, Scheduled } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { ApiBackoff } from './api-backoff.js';
import { pauseAfter, statusOf } from './api-failure.js';

/** How long after a change each patch of it is due, ms. */
const DUE_MS = [0, 2_000, 10_000, 30_000, 60_000] as const;

/** How long after an interruption kubelet's watches may return, ms: client-go waits for up to 30 s, doubled by jitter. */
const LAG_MS = 60_000;

/** The time between two patches of one pod, ms: an object that is written all the time must not keep kubelet busy. */
const BETWEEN_PATCHES_MS = 1_000;

/** The API server answers a patch within some ms, so this allows hundreds of patches per second. */
const MOST_IN_FLIGHT = 16;

/** A patch that is due. */
export interface DuePatch {
  /** Whether it is the first one after a change. */
  readonly isFirst: boolean;
  /** The number in its value; 0: none. */
  readonly repetition: number;
  readonly sinceChangeMs: number;
}

interface QueueOptions {
  readonly maxPatchesPerSecond: number;
  readonly burst: number;
  readonly maxDelayMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Sets the annotation; resolves to false if it has this value. */
  readonly patch: (pod: string, due: DuePatch) => Promise<boolean>;
  /** The pod has waited for too long. */
  readonly onBehind: (pod: string, waitedMs: number) => void;
  /** A patch failed. */
  readonly onFailure: (error: unknown, delayMs: number) => void;
}

interface Entry {
  /** When the newest change was seen, monotonic ms. */
  changedAt: number;
  /** Which patch is next: an index of `DUE_MS`. */
  next: number;
  /** Not before this, monotonic ms. */
  dueAt: number;
  isSent: boolean;
  /** Once the API server has refused a patch of this pod. */
  refusals?: ApiBackoff;
}

export class PatchQueue {
  readonly #options: QueueOptions;
  readonly #entries = new Map<string, Entry>();
  /** When pods with no entry were last patched, if that was less than `BETWEEN_PATCHES_MS` ago; oldest first. */
  readonly #patchedAt = new Map<string, number>();
  /** Of patches that anybody's patch would have failed like. */
  readonly #outage: ApiBackoff;
  #tokens: number;
  #filledAt: number;
  #pausedAt = -Infinity;
  #pausedUntil = -Infinity;
  #interruptedAt = -Infinity;
  #inFlight = 0;
  #timer: Scheduled | undefined;
  #isClosed = false;

  constructor(options: QueueOptions) {
    const { burst, clock, random } = options;
    this.#options = options;
    this.#outage = new ApiBackoff(random);
    this.#tokens = burst;
    this.#filledAt = clock.monotonic();
  }

  /** The pods that wait for the first patch of a change. */
  get length(): number {
    let waiting = 0;
    for (const { next } of this.#entries.values()) if (next === 0) waiting += 1;
    return waiting;
  }

  /**
   * An object of these pods has changed.
   * @param delayMs how long the first patch of a pod waits.
   */
  add(pods: readonly string[], changedAt: number, delayMs: (pod: string) => number): void {
    for (const pod of pods) {
      const entry = this.#entries.get(pod);
      const dueAt = Math.max(
        changedAt + delayMs(pod),
        (this.#patchedAt.get(pod) ?? -Infinity) + BETWEEN_PATCHES_MS,
      );
      if (!entry) this.#entries.set(pod, { changedAt, next: 0, dueAt, isSent: false });
      else {
        // An entry that waits keeps its time: otherwise an object that changes all the time would never be delivered.
        if (entry.next > 0) entry.dueAt = dueAt;
        entry.next = 0;
        entry.changedAt = Math.max(entry.changedAt, changedAt);
      }
    }
    this.#work();
  }

  /** The pod has the value of this repetition, set here or by another replica. */
  has(pod: string, repetition: number): void {
    const entry = this.#entries.get(pod);
    if (entry && !entry.isSent && repetition >= entry.next) this.#advance(pod, entry, repetition);
  }

  /** The API server was away, for kubelet as well. */
  interrupted(): void {
    this.#interruptedAt = this.#options.clock.monotonic();
  }

  delete(pod: string): void {
    this.#entries.delete(pod);
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#entries.clear();
  }

  readonly #work = (): void => {
    this.#timer?.cancel();
    this.#timer = undefined;
    while (!this.#isClosed && this.#inFlight < MOST_IN_FLIGHT) {
      const now = this.#options.clock.monotonic();
      const { pod, entry, waitMs } = this.#choose(now);
      const delayMs = Math.max(waitMs, this.#pausedUntil - now, this.#waitForToken(now));
      if (delayMs > 0 || pod === undefined || !entry) {
        if (Number.isFinite(delayMs))
          this.#timer = this.#options.clock.schedule(this.#work, delayMs, { ref: false });
        return;
      }
      this.#tokens -= 1;
      void this.#send(pod, entry, now);
    }
  };

  /** The entry to send first, and how long to wait for it; drops entries that have waited for too long. */
  #choose(now: number): { pod?: string; entry?: Entry; waitMs: number } {
    const { maxDelayMs, onBehind } = this.#options;
    let best: { pod?: string; entry?: Entry; waitMs: number } = { waitMs: Infinity };
    for (const [pod, entry] of this.#entries) {
      if (entry.isSent) continue;
      if (now - entry.changedAt > maxDelayMs) {
        this.#entries.delete(pod);
        if (entry.next === 0) onBehind(pod, now - entry.changedAt);
        continue;
      }
      const waitMs = Math.max(0, entry.dueAt - now);
      const isSooner = waitMs < best.waitMs;
      const isFirst = waitMs === best.waitMs && entry.next === 0 && best.entry?.next !== 0;
      if (isSooner || isFirst) best = { pod, entry, waitMs };
      // First patches of changes are in the order of the entries.
      if (waitMs === 0 && entry.next === 0) return best;
    }
    return best;
  }

  #waitForToken(now: number): number {
    const { maxPatchesPerSecond, burst } = this.#options;
    const filled = ((now - this.#filledAt) * maxPatchesPerSecond) / 1_000;
    this.#tokens = Math.min(burst, this.#tokens + filled);
    this.#filledAt = now;
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) * 1_000) / maxPatchesPerSecond);
  }

  async #send(pod: string, entry: Entry, now: number): Promise<void> {
    const { patch, onFailure, clock, random } = this.#options;
    const { changedAt } = entry;
    const sinceChangeMs = now - changedAt;
    const repetition = DUE_MS.findLastIndex((dueMs) => sinceChangeMs >= dueMs);
    entry.isSent = true;
    this.#inFlight += 1;
    try {
      const isChanged = await patch(pod, { isFirst: entry.next === 0, repetition, sinceChangeMs });
      this.#outage.reset();
      if (isChanged) this.#notePatch(pod);
      if (entry.changedAt === changedAt) this.#advance(pod, entry, repetition);
      else entry.dueAt = Math.max(entry.dueAt, clock.monotonic() + BETWEEN_PATCHES_MS);
    } catch (error) {
      const status = statusOf(error);
      if (status === 404 || status === 409) this.#remove(pod, entry);
      else if (isOutage(status) && this.#pausedAt >= now) {
        // It was in flight when another one failed: the same outage.
        this.#pausedUntil = Math.max(this.#pausedUntil, clock.monotonic() + pauseAfter(error));
        entry.dueAt = this.#pausedUntil;
      } else {
        const backoff = isOutage(status) ? this.#outage : (entry.refusals ??= new ApiBackoff(random));
        const delayMs = backoff.after(error);
        entry.dueAt = clock.monotonic() + delayMs;
        if (isOutage(status)) {
          this.#pausedAt = clock.monotonic();
          this.#pausedUntil = entry.dueAt;
        }
        onFailure(error, delayMs);
      }
    } finally {
      entry.isSent = false;
      this.#inFlight -= 1;
      this.#work();
    }
  }

  /** This patch, and those before it, are done. */
  #advance(pod: string, entry: Entry, repetition: number): void {
    entry.next = repetition + 1;
    const dueMs = DUE_MS[entry.next];
    const mayBeMissed = entry.changedAt - this.#interruptedAt < LAG_MS;
    if (dueMs === undefined || !mayBeMissed) this.#remove(pod, entry);
    else entry.dueAt = entry.changedAt + dueMs;
  }

  /** Unless the pod has another entry by now. */
  #remove(pod: string, entry: Entry): void {
    if (this.#entries.get(pod) === entry) this.#entries.delete(pod);
  }

  #notePatch(pod: string): void {
    const now = this.#options.clock.monotonic();
    this.#patchedAt.delete(pod);
    this.#patchedAt.set(pod, now);
    for (const [oldest, at] of this.#patchedAt) {
      if (now - at < BETWEEN_PATCHES_MS) return;
      this.#patchedAt.delete(oldest);
    }
  }
}

/** Whether the API server answers nobody, as far as the answer to one patch tells. */
function isOutage(status: number | undefined): boolean {
  return status === undefined || status === 429 || status >= 500;
}
