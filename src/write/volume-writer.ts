/**
 * Publishing a set of files as one revision, in this order:
 * announce → make and fill the revision → swap → links → sync → sweep.
 *
 * Writers in several processes need no lock, for they share no name: a revision and the pending `..data` link
 * that announces it are new each time, the last to swap wins, and the links are made to fit whatever `..data`
 * points to then. The pending link exists from before the revision is made until the swap, and names its owner;
 * what no live pending link and no `..data` points to is nobody's, and is removed.
 */
import { isAbsolute } from 'node:path';

import { errnoOf } from '../core/errors.js';
import type { Clock } from '../core/clock.js';
import type { Random } from '../core/random.js';
import { call, type Effects } from '../fs/effects.js';
import {
  DATA_LINK,
  KUBELET_PENDING_LINK,
  isRevisionName,
  isUserVisible,
  revisionName,
  topOf,
  userLinkTarget,
} from '../fs/volume-layout.js';
import { makeDirectories, removeTree, syncNames } from './directories.js';
import type { Pace } from './pace.js';
import { removeIfThere, type Durability } from './pending-file.js';
import { isAbandoned, isPendingLinkName, temporaryName } from './temporary-name.js';
import { WriteProgress } from './write-progress.js';
import { fillRevision, holdsFiles, makeRevision, type RevisionFiles } from './volume-revision.js';

/** What a write to a volume came to. */
export interface VolumeWriteResult {
  /** Whether there is a new revision; false when the published one holds these very files already. */
  readonly changed: boolean;
  /** What `..data` points to now. */
  readonly revision: string;
}

/** How a volume is written. */
export interface VolumeSettings {
  readonly durability: Durability;
  readonly createDirectory: boolean;
  readonly graceMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** A random name is taken by chance never, by a broken source of chance always. */
const MAX_NAMES = 10;

/** Other writers would have to swap this often within one check at the links. */
const MAX_ALIGNMENTS = 20;

/** Writes to one volume, one thing at a time. */
export class VolumeWriter {
  readonly #directory: string;
  readonly #settings: VolumeSettings;
  /** When revisions that have been replaced may be removed, by the monotonic clock. */
  readonly #retired = new Map<string, number>();

  constructor(directory: string, settings: VolumeSettings) {
    this.#directory = directory;
    this.#settings = settings;
  }

  /** Publishes these files. Throws a `WriteError`. */
  *publish(files: RevisionFiles, pace: Pace): Effects<VolumeWriteResult> {
    const progress = new WriteProgress(this.#directory);
    try {
      yield* this.#prepare(files, progress, pace);
      const current = yield* this.#current();
      if (current !== undefined && (yield* this.#holds(current, files, progress))) {
        if (yield* this.#align(progress)) yield* this.#sync(progress);
        yield* this.sweep();
        return { changed: false, revision: current };
      }
      const { revision, now } = yield* this.#replace(files, progress);
      if (current !== undefined) this.#retire(current);
      yield* this.#align(progress);
      yield* this.#sync(progress);
      yield* this.sweep(now);
      return { changed: true, revision };
    } catch (cause) {
      throw progress.failure(cause);
    }
  }

  /** Takes away all that was published: `..data` first, so that no reader finds a part. Throws a `WriteError`. */
  *clear(pace: Pace): Effects<void> {
    const progress = new WriteProgress(this.#directory);
    try {
      yield* pace.enter(this.#directory);
      progress.step = 'remove';
      yield* ifThere(call('unlink', this.#path(DATA_LINK)));
      progress.published = true;
      yield* this.#removeLinks(new Set());
      yield* this.#removeUnneeded(undefined, 0);
      yield* this.#sync(progress);
    } catch (cause) {
      if (errnoOf(cause) === 'ENOENT') return; // no volume: nothing is published
      throw progress.failure(cause);
    }
  }

  /** How long until the next retired revision may be removed, ms; undefined when none waits. */
  get nextRemovalMs(): number | undefined {
    if (this.#retired.size === 0) return undefined;
    return Math.max(0, Math.min(...this.#retired.values()) - this.#settings.clock.monotonic());
  }

  /**
   * Removes what nobody needs, as far as that is possible.
   *
   * @param now what the clock of the file system shows, ns, if that is known.
   */
  *sweep(now?: bigint): Effects<void> {
    try {
      yield* this.#removeUnneeded(now, this.#settings.graceMs);
    } catch {
      // What was published is published; what is left is swept by the next write.
    }
  }

  // ---------------------------------------------------------------------------------------------- before

  *#prepare(files: RevisionFiles, progress: WriteProgress, pace: Pace): Effects<void> {
    const { createDirectory, durability } = this.#settings;
    if (createDirectory) {
      progress.step = 'create-directory';
      yield* makeDirectories(this.#directory, durability === 'full');
    }
    yield* pace.enter(this.#directory);
    progress.step = 'resolve';
    for (const name of [DATA_LINK, ...new Set([...files.keys()].map(topOf))]) {
      // A file or link on such a name is replaced; a directory may hold what nobody wants to lose.
      const stat = yield* ifThere(call('lstat', this.#path(name)));
      if (!stat?.isDirectory()) continue;
      progress.path = this.#path(name);
      throw progress.refusal('ERR_WRITE_NOT_FILE', 'a directory stands where the link has to be; remove it');
    }
  }

  *#holds(revision: string, files: RevisionFiles, progress: WriteProgress): Effects<boolean> {
    progress.step = 'compare';
    return yield* holdsFiles(this.#revisionPath(revision), files);
  }

  // ------------------------------------------------------------------------------------------ publishing

  /** Makes a new revision and swaps it in. */
  *#replace(files: RevisionFiles, progress: WriteProgress): Effects<{ revision: string; now: bigint }> {
    const { revision, pending } = yield* this.#announce(progress);
    try {
      yield* fillRevision(this.#path(revision), files, this.#settings.durability, progress);
      const now = (yield* call('lstat', this.#path(revision))).ctimeNs;
      progress.step = 'rename';
      yield* this.#swap(pending, revision);
      progress.published = true;
      return { revision, now };
    } catch (error) {
      yield* this.#withdraw(revision, pending);
      throw error;
    }
  }

  /** Links to the revision that is to come, then makes its directory. */
  *#announce(progress: WriteProgress): Effects<{ revision: string; pending: string }> {
    const { clock, random } = this.#settings;
    for (let attempt = 1; ; attempt += 1) {
      progress.step = 'create';
      const revision = revisionName(clock.now(), random);
      const pending = this.#path(temporaryName('link'));
      try {
        yield* call('symlink', revision, pending);
        yield* makeRevision(this.#path(revision));
        return { revision, pending };
      } catch (error) {
        const isTaken = errnoOf(error) === 'EEXIST';
        if (isTaken) yield* removeIfThere(pending);
        else yield* this.#withdraw(revision, pending);
        if (!isTaken || attempt === MAX_NAMES) throw error;
      }
    }
  }

  *#swap(pending: string, revision: string): Effects<void> {
    try {
      yield* call('rename', pending, this.#path(DATA_LINK));
    } catch (error) {
      // A server whose answer was lost is asked twice, and fails the second time.
      if ((yield* this.#current()) !== revision) throw error;
    }
  }

  /** The link goes last: it says whose the directory is. */
  *#withdraw(revision: string, pending: string): Effects<void> {
    try {
      yield* removeTree(this.#path(revision));
      yield* call('unlink', pending);
    } catch {
      // The next writer sweeps it, once this process is gone.
    }
  }

  /** Makes the user-visible links fit what `..data` points to; returns whether any had to be changed. */
  *#align(progress: WriteProgress): Effects<boolean> {
    progress.step = 'link';
    let changed = false;
    for (let attempt = 1; attempt <= MAX_ALIGNMENTS; attempt += 1) {
      const revision = yield* this.#current();
      if (revision === undefined) break; // another writer has cleared the volume
      const tops = yield* ifThere(call('readdir', this.#revisionPath(revision)));
      if (tops) {
        for (const top of tops) if (yield* this.#link(top)) changed = true;
        if (yield* this.#removeLinks(new Set(tops))) changed = true;
      }
      // Another process may have swapped meanwhile, and seen links of ours that are wrong now.
      if ((yield* this.#current()) === revision) break;
    }
    return changed;
  }

  *#link(name: string): Effects<boolean> {
    const path = this.#path(name);
    const target = userLinkTarget(name);
    const found = yield* this.#readLink(name);
    if (found === target) return false;
    if (found === undefined) {
      try {
        yield* call('symlink', target, path);
        return true;
      } catch (error) {
        // A file has the name, or another writer was quicker.
        if (errnoOf(error) !== 'EEXIST') throw error;
      }
    }
    const pending = this.#path(temporaryName('link'));
    yield* call('symlink', target, pending);
    try {
      yield* call('rename', pending, path);
      return true;
    } catch (error) {
      yield* removeIfThere(pending);
      throw error;
    }
  }

  /** Removes the links of vanished keys, whoever left them; nothing else that is in the directory. */
  *#removeLinks(wanted: ReadonlySet<string>): Effects<boolean> {
    let removed = false;
    for (const name of yield* call('readdir', this.#directory)) {
      if (!isUserVisible(name) || wanted.has(name)) continue;
      if ((yield* this.#readLink(name)) !== userLinkTarget(name)) continue;
      yield* ifThere(call('unlink', this.#path(name)));
      removed = true;
    }
    return removed;
  }

  // ------------------------------------------------------------------------------------------- afterwards

  *#sync(progress: WriteProgress): Effects<void> {
    if (this.#settings.durability !== 'full') return;
    progress.step = 'sync-directory';
    yield* syncNames(this.#directory);
  }

  /**
   * Removes abandoned pending links, and revisions that are neither published nor about to be, nor waiting for
   * readers in flight.
   */
  *#removeUnneeded(now: bigint | undefined, graceMs: number): Effects<void> {
    const revisions = (yield* call('readdir', this.#directory)).filter(isRevisionName);
    // In this order: a revision that is listed was announced before, so its pending link is listed now, or has
    // become `..data` since, and that is read last.
    const needed = yield* this.#pendingRevisions(now);
    needed.add(yield* this.#current());
    for (const retired of this.#retired.keys()) {
      if (needed.has(retired) || !revisions.includes(retired)) this.#retired.delete(retired);
    }
    for (const revision of revisions) {
      if (needed.has(revision) || !this.#hasNoReaders(revision, graceMs)) continue;
      yield* removeTree(this.#path(revision));
      this.#retired.delete(revision);
    }
  }

  #retire(revision: string): void {
    const { graceMs, clock } = this.#settings;
    if (graceMs > 0) this.#retired.set(revision, clock.monotonic() + graceMs);
  }

  /** A revision replaced by another process counts from when it is first seen. */
  #hasNoReaders(revision: string, graceMs: number): boolean {
    if (graceMs <= 0) return true;
    const now = this.#settings.clock.monotonic();
    const since = this.#retired.get(revision);
    if (since === undefined) this.#retired.set(revision, now + graceMs);
    return since !== undefined && since <= now;
  }

  /** The revisions that live writers are about to publish; the links of dead ones are removed. */
  *#pendingRevisions(now: bigint | undefined): Effects<Set<string | undefined>> {
    const revisions = new Set<string | undefined>();
    for (const name of yield* call('readdir', this.#directory)) {
      const isPending = isPendingLinkName(name);
      if (!isPending && name !== KUBELET_PENDING_LINK) continue;
      const target = yield* this.#readLink(name);
      if (isPending && !(yield* isAbandoned(this.#path(name), name, now))) revisions.add(target);
      else yield* removeIfThere(this.#path(name));
    }
    return revisions;
  }

  // ------------------------------------------------------------------------------------------------ links

  /** What `..data` points to; undefined when it is missing or no link. */
  #current(): Effects<string | undefined> {
    return this.#readLink(DATA_LINK);
  }

  *#readLink(name: string): Effects<string | undefined> {
    try {
      return yield* call('readlink', this.#path(name));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EINVAL') return undefined;
      throw error;
    }
  }

  /** A `..data` that was not made here may point anywhere; it is read, but only what is in the volume is removed. */
  #revisionPath(revision: string): string {
    return isAbsolute(revision) ? revision : this.#path(revision);
  }

  #path(name: string): string {
    return `${this.#directory}/${name}`;
  }
}

/** What a call answers, or undefined when there is nothing. */
function* ifThere<T>(steps: Effects<T>): Effects<T | undefined> {
  try {
    return yield* steps;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
