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
 * | that does not say where                            | all is left to the check                                   |
 * | about more than `MAX_FILES` files, or of more than | all is left to the check                                   |
 * | `MAX_BYTES_AT_ONCE`                                |                                                            |
 *
 * Why a file is complete: the kernel queues an event for each write before the write returns, and all events that are
 * queued when a callback runs are delivered in the same turn of the event loop. The check begins after them. So if a
 * file was created in place instead, every write before it was read has been reported by the kernel at that time,
 * except that of a call that has not returned yet: a file of more than a page counts only if it was changed after its
 * last write, as a rename does.
 */
import { MAX_BYTES_AT_ONCE, type Replacement } from '../../fs/observation.js';

/** More files than this are compared by the check, and are one change. */
const MAX_FILES = 16;

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
  readonly #busy: Set<string>;
  #isLeft = false;
  #bytes = 0;

  /** @param pendingPaths the paths of the files whose differences are pending since the last check. */
  constructor(reader: ReplacementReader, pendingPaths?: Iterable<string>) {
    this.#reader = reader;
    this.#busy = new Set(pendingPaths);
  }

  /** A hint about this path; undefined: about anything. */
  hinted(path: string | undefined, written: boolean): void {
    if (this.#isLeft) return;
    if (path === undefined) this.#leave();
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
    const replacement = this.#reader.readReplacement(path);
    this.#replaced.delete(path);
    if (!replacement) return;
    this.#replaced.set(path, replacement);
    this.#bytes += replacement.file.snapshot.size;
    if (this.#replaced.size > MAX_FILES || this.#bytes > MAX_BYTES_AT_ONCE) this.#leave();
  }

  #leave(): void {
    this.#isLeft = true;
    this.#replaced.clear();
  }
}
