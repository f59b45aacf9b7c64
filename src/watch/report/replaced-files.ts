/**
 * Files, alone or of a directory or a tree, that were replaced by rename, read in the callback of the hint and reported by
 * the check that follows, before it observes anything.
 *
 * | a hint since the last check                        | then                                                       |
 * |----------------------------------------------------|------------------------------------------------------------|
 * | about a file that another one has replaced         | it is read; a later hint about it has it read again        |
 * | that a file was written in place, or about a file  | all is left to the check: what changes together is one     |
 * | that was pending, and not that it came or went     | change                                                     |
 * | that another file has come or gone                 | it is no longer waited for                                 |
 * | the second one about the file, whose timestamps do | all is left to the check: its name may have been free      |
 * | not show a rename                                  |                                                            |
 * | that does not say where                            | all is left to the check                                   |
 * | about more than `MAX_FILES` files, or of more than | all is left to the check                                   |
 * | `MAX_BYTES_AT_ONCE`                                |                                                            |
 * | one of more than `MAX_HINTS`                       | the same: while events are handled more slowly than they   |
 * |                                                    | come, Node.js does nothing else                            |
 *
 * Why a file is complete: it was changed after its last write, as a rename does; or nothing else was reported about its name
 * since the other file was found there. Whoever creates a file in the place of another one removes that first, and the kernel
 * reports both. Writes are reported, too, before they return, and all events that are queued when a callback runs are
 * delivered in the same turn of the event loop. The check begins after them.
 */
import { MAX_BYTES_AT_ONCE, type Replacement } from '../../fs/observation.js';

/** More files than this are compared by the check, and are one change. */
const MAX_FILES = 16;

/** A file may be opened for each of them. Replacing a file leads to three: two are about its temporary name. */
const MAX_HINTS = 4 * MAX_FILES;

const NOTHING: readonly Replacement[] = [];

/** See `Target.readReplacement`. */
interface ReplacementReader {
  readReplacement(path: string): Replacement | undefined;
}

/** What was read since the last check. */
export class ReplacedFiles {
  readonly #reader: ReplacementReader;
  readonly #replaced = new Map<string, Replacement>();
  /** The files that were written in place, or are pending, by path. */
  readonly #busy = new Set<string>();
  /** The paths that hints were about. */
  readonly #mentioned = new Set<string>();
  #isLeft = false;
  #hints = 0;
  #bytes = 0;

  constructor(reader: ReplacementReader) {
    this.#reader = reader;
  }

  /** These are the paths of the files whose differences are pending. */
  await(pendingPaths: Iterable<string>): void {
    for (const path of pendingPaths) this.#busy.add(path);
  }

  /** A hint during the check before, about this path; undefined: about anything. */
  missed(path: string | undefined): void {
    if (path === undefined || this.#mentioned.size >= MAX_HINTS) this.leave();
    else this.#mentioned.add(path);
  }

  /** A hint about this path; undefined: about anything. */
  hinted(path: string | undefined, written: boolean): void {
    if (this.#isLeft) return;
    if (path === undefined) this.leave();
    else if (written) this.#busy.add(path);
    else {
      this.#busy.delete(path);
      this.#consider(path);
    }
  }

  /** What is to be reported now. */
  take(): readonly Replacement[] {
    const isNothing = this.#isLeft || this.#replaced.size === 0 || this.#busy.size > 0;
    const replaced = isNothing ? NOTHING : [...this.#replaced.values()];
    this.#replaced.clear();
    return replaced;
  }

  #consider(path: string): void {
    this.#hints += 1;
    if (this.#hints > MAX_HINTS) {
      this.leave();
      return;
    }
    const isFirst = !this.#mentioned.has(path);
    this.#mentioned.add(path);
    const replacement = this.#reader.readReplacement(path);
    this.#replaced.delete(path);
    if (!replacement) return;
    if (!isFirst && !replacement.file.finished) {
      this.leave();
      return;
    }
    this.#replaced.set(path, replacement);
    this.#bytes += replacement.file.snapshot.size;
    if (this.#replaced.size > MAX_FILES || this.#bytes > MAX_BYTES_AT_ONCE) this.leave();
  }

  /** All is left to the check. */
  leave(): void {
    this.#isLeft = true;
    this.#replaced.clear();
  }
}
