/**
 * Compares what is seen with what was last reported, and reports the difference when it is ripe.
 *
 * | what is seen                | compared with the last report    | then                                       |
 * |-----------------------------|----------------------------------|--------------------------------------------|
 * | a file                      | same digest                      | end doubt and trouble; a new revision is told |
 * | a file                      | another digest, or was missing   | `change`, after the patience of patience.ts |
 * | nothing                     | missing                          | end doubt and trouble                      |
 * | nothing                     | a file                           | `change` to missing, after the grace       |
 * | something unreadable        | the same trouble                 | end doubt                                  |
 * | something unreadable        | anything else                    | `error`, after the grace; the file is kept |
 *
 * At the start nothing is doubted but a file that is being written this moment: there is nothing to keep.
 */
import { basename } from 'node:path';

import type { TargetError } from '../errors.js';
import type { Clock, Scheduled } from '../ports.js';
import { MissingSnapshot, type FileSnapshot, type Sighting, type Snapshot } from '../snapshot.js';
import { Doubt, patienceFor, type LastFile, type PatienceOptions } from './patience.js';

/** Why a look was taken: a backend's name, or one of the watcher's own reasons. */
export type ChangeCause =
  'start' | 'fs' | 'parcel' | 'poll' | 'backstop' | 'restart' | 'check' | (string & {});

/** Two states of the target that differ. */
export interface Change {
  /** What was last reported; at the first report a `MissingSnapshot`. */
  readonly previous: Snapshot;
  readonly current: Snapshot;
  /** What made the watcher look when it first saw the difference. */
  readonly cause: ChangeCause;
}

/** A new revision with the same bytes. */
export interface RevisionChange {
  readonly previous: string | undefined;
  readonly current: string;
}

/** Who is told. */
export interface ReportListener {
  change(change: Change): void;
  revision(revision: RevisionChange): void;
  trouble(error: TargetError): void;
  /** A difference was seen that is not ripe yet. */
  lookAgain(cause: ChangeCause): void;
}

/** A sighting that says something about the target. */
export type ClearSighting = Exclude<Sighting, { kind: 'moving' | 'unfamiliar' }>;

/** How a reporter behaves. */
export interface ReporterOptions extends PatienceOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly persistent: boolean;
}

/** The memory of what was reported. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #listener: ReportListener;
  #reported: Snapshot;
  /** A copy of the bytes reported: a listener may do with its own what it likes. */
  #bytes: Buffer | undefined;
  #lastFile: LastFile | undefined;
  #trouble: TargetError | undefined;
  #doubt: Doubt | undefined;
  /** Entries that were written in place since what is seen was last what was reported. */
  readonly #written = new Set<string>();
  #timer: Scheduled | undefined;

  constructor(options: ReporterOptions, listener: ReportListener) {
    this.#options = options;
    this.#listener = listener;
    this.#reported = new MissingSnapshot(options.path);
  }

  /** What was last reported. */
  get reported(): Snapshot {
    return this.#reported;
  }

  /** Why the target cannot be read at present, once that was reported. */
  get trouble(): TargetError | undefined {
    return this.#trouble;
  }

  /** Whether something was seen that differs from the report and is not ripe yet. */
  get inDoubt(): boolean {
    return this.#doubt !== undefined;
  }

  /** Takes in that an entry of this name was written in place. */
  noteWrite(entry: string): void {
    this.#written.add(entry);
  }

  /**
   * Takes in what a look has found.
   * @param tellsWrites whether `noteWrite` would have been called for every write.
   */
  consider(seen: ClearSighting, cause: ChangeCause, tellsWrites: boolean): void {
    if (this.#isKnown(seen)) {
      this.#confirm(seen);
      return;
    }
    const now = this.#options.clock.monotonic();
    const key = differenceKey(seen);
    this.#doubt ??= new Doubt(key, cause, now);
    const beingWritten = seen.kind === 'file' && !seen.steady;
    const patience =
      cause === 'start' && !beingWritten
        ? { quietMs: 0, totalMs: 0 }
        : patienceFor(seen, this.#lastFile, tellsWrites ? this.#wasWritten(seen) : undefined, this.#options);
    const remainingMs = this.#doubt.remaining(key, now, patience);
    if (remainingMs > 0) this.#wait(remainingMs, this.#doubt.cause);
    else this.#report(seen, this.#doubt.cause);
  }

  /** Forgets what it doubts. */
  close(): void {
    this.#doubt = undefined;
    this.#written.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wasWritten(seen: ClearSighting): boolean {
    return seen.kind === 'file' && this.#written.has(basename(seen.snapshot.realPath));
  }

  #isKnown(seen: ClearSighting): boolean {
    switch (seen.kind) {
      case 'file':
        return this.#isSameContent(seen.snapshot);
      case 'missing':
        return this.#reported.kind === 'missing';
      case 'trouble':
        return this.#trouble?.code === seen.error.code && this.#trouble.path === seen.error.path;
    }
  }

  #isSameContent(snapshot: FileSnapshot): boolean {
    if (this.#bytes && snapshot.content) return this.#bytes.equals(snapshot.content);
    return !this.#bytes && !snapshot.content && snapshot.digest === this.#reported.digest;
  }

  #confirm(seen: ClearSighting): void {
    this.close();
    if (seen.kind === 'trouble') return;
    this.#trouble = undefined;
    if (seen.kind === 'missing') return;
    const previous = this.#reported.revision;
    const current = seen.snapshot.revision;
    this.#remember(seen);
    if (current !== undefined && current !== previous) this.#listener.revision({ previous, current });
  }

  #report(seen: ClearSighting, cause: ChangeCause): void {
    this.close();
    if (seen.kind === 'trouble') {
      this.#trouble = seen.error;
      this.#listener.trouble(seen.error);
      return;
    }
    const previous = this.#reported;
    this.#trouble = undefined;
    this.#remember(seen);
    this.#listener.change({ previous, current: this.#reported, cause });
  }

  #remember(seen: Exclude<ClearSighting, { kind: 'trouble' }>): void {
    if (seen.kind === 'file') {
      this.#reported = seen.snapshot;
      this.#bytes = seen.snapshot.content && Buffer.from(seen.snapshot.content);
      this.#lastFile = { links: seen.chain.links, inode: seen.inode };
    } else {
      this.#reported = new MissingSnapshot(this.#options.path);
      this.#bytes = undefined;
    }
  }

  #wait(delayMs: number, cause: ChangeCause): void {
    const { clock, persistent } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.schedule(() => this.#listener.lookAgain(cause), delayMs, { ref: persistent });
  }
}

function differenceKey(seen: ClearSighting): string {
  switch (seen.kind) {
    case 'file':
      return `${seen.signature} ${seen.snapshot.digest}`;
    case 'missing':
      return seen.kind;
    case 'trouble':
      return `${seen.error.code} ${seen.error.path}`;
  }
}
