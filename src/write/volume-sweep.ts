/**
 * Removes the revisions of a volume that nobody needs.
 *
 * | a revision                                             | is removed                                          |
 * |--------------------------------------------------------|-----------------------------------------------------|
 * | that `..data` points to                                | never                                               |
 * | that the pending link of a running writer points to    | never                                               |
 * | that was replaced                                      | `graceMs` after that, or after it was first seen    |
 * | any other, and what only has the name of a revision    | the same, counted from when it was first seen       |
 */
import type { Clock } from '../core/clock.js';
import { call, type Effects } from '../fs/effects.js';
import { KUBELET_PENDING_LINK, isRevisionName } from '../fs/volume-layout.js';
import type { HeldDirectory } from './held-directory.js';
import { removeTree } from './remove-tree.js';
import { isAbandoned, isPendingLinkName, removeUnfinished, surveyOwners } from './temporary-name.js';
import { publishedRevision, readLink } from './volume-links.js';

/** Remembers which revisions of a volume wait to be removed. */
export class VolumeSweep {
  readonly #clock: Clock;
  readonly #graceMs: number;
  /** When revisions may be removed, monotonic ms. */
  readonly #retired = new Map<string, number>();

  constructor(clock: Clock, graceMs: number) {
    this.#clock = clock;
    this.#graceMs = graceMs;
  }

  /** How many revisions wait to be removed. */
  get waiting(): number {
    return this.#retired.size;
  }

  /** How long until the next revision may be removed, ms; undefined when none waits. */
  get nextRemovalMs(): number | undefined {
    if (this.#retired.size === 0) return undefined;
    return Math.max(0, Math.min(...this.#retired.values()) - this.#clock.monotonic());
  }

  /** A revision has been replaced. */
  retire(revision: string): void {
    if (this.#graceMs > 0) this.#retired.set(revision, this.#clock.monotonic() + this.#graceMs);
  }

  /**
   * Removes every revision that is not needed, even if another one cannot be removed.
   *
   * @param now the time of the file system's own clock, ns, if it is known.
   * @param graceMs default: that of the volume.
   * @returns the first revision that cannot be removed, and why.
   */
  *run(
    volume: HeldDirectory,
    now: bigint | undefined,
    graceMs = this.#graceMs,
  ): Effects<{ readonly revision: string; readonly error: unknown } | undefined> {
    const revisions = (yield* call('readdir', volume.at('.'))).filter(isRevisionName);
    // In this order: a revision that is listed was announced before, so its pending link is listed now, or has become
    // `..data` since, which is read last.
    const needed = yield* pendingRevisions(volume, now);
    needed.add(yield* publishedRevision(volume));
    const found = new Set(revisions);
    for (const retired of this.#retired.keys()) {
      if (needed.has(retired) || !found.has(retired)) this.#retired.delete(retired);
    }
    let failure: { revision: string; error: unknown } | undefined;
    for (const revision of revisions) {
      if (needed.has(revision) || !this.#isDue(revision, graceMs)) continue;
      // Not retried by the timer if it fails: the next write does.
      this.#retired.delete(revision);
      try {
        yield* removeTree(volume, revision);
      } catch (error) {
        failure ??= { revision, error };
      }
    }
    return failure;
  }

  #isDue(revision: string, graceMs: number): boolean {
    if (graceMs <= 0) return true;
    const now = this.#clock.monotonic();
    const due = this.#retired.get(revision);
    if (due === undefined) this.#retired.set(revision, now + graceMs);
    return due !== undefined && due <= now;
  }
}

/** The revisions that running writers are about to publish. The links of writers that have ended are removed. */
function* pendingRevisions(volume: HeldDirectory, now: bigint | undefined): Effects<Set<string | undefined>> {
  const hasEnded = surveyOwners();
  const revisions = new Set<string | undefined>();
  for (const name of yield* call('readdir', volume.at('.'))) {
    const isPending = isPendingLinkName(name);
    if (!isPending && name !== KUBELET_PENDING_LINK) continue;
    const revision = yield* readLink(volume, name);
    if (isPending && !(yield* isAbandoned(volume, name, now, hasEnded))) revisions.add(revision);
    else yield* removeUnfinished(volume.at(name));
  }
  return revisions;
}
