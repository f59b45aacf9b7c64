/**
 * What is reported before the check that a hint leads to: a swap, which few calls read in the callback of the hint
 * (fs/swap-probe.ts), and files, alone or of a directory or a tree, that were replaced by rename.
 *
 * | a hint arrives                               | while                                    | then                           |
 * |----------------------------------------------|------------------------------------------|--------------------------------|
 * | about an entry, the first since a check      | the target stood still at the last check | it is read if it was swapped:  |
 * |                                              |                                          | a key, a small volume, a group |
 * |                                              |                                          | of keys of one volume          |
 * | that names the link a swap retargets         | a check is requested                     | the same: the swap came later  |
 * | about another revision, or the pending link  | no check is under way                    | the same, and no check: no     |
 * |                                              |                                          | path leads through it          |
 * | about another entry                          | a check is requested                     | left to that check             |
 * | any                                          | a check is under way, or none succeeded  | left to the next check         |
 * | lost, doubled, late                          | –                                        | what was read is what the disk |
 * |                                              |                                          | held; the check compares again |
 *
 * A replaced file is read in the callback, and reported at the beginning of the check: whether it is complete is known when
 * all events of the turn have arrived (report/replaced-files.ts).
 *
 * Every other hint requests a check as well, whatever was read. What is reported is what the path held at an instant after
 * the hint, and the check finds whatever came later, so a lost or needless answer costs time and nothing else.
 *
 * A swap is rare, so the code that answers it is cold, and each function called before the listener costs as much as a
 * system call. This is why there are few of them.
 */
import type { Observer } from '../fs/observer.js';
import type { ChangeCause } from './change.js';
import type { CheckLoop } from './check-loop.js';
import { ReplacedFiles } from './report/replaced-files.js';
import type { Reporter } from './report/reporter.js';

/** Reads in the callback of a hint, and reports before the check. */
export class EarlyReport {
  readonly #loop: CheckLoop<ChangeCause>;
  readonly #observer: Observer;
  readonly #reporter: Reporter;
  /** From the first hint until the check, or as long as a file is pending. */
  #replaced: ReplacedFiles | undefined;
  /** Of the next check: what hints were about since the one that is under way began. */
  #next: ReplacedFiles | undefined;

  constructor(loop: CheckLoop<ChangeCause>, observer: Observer, reporter: Reporter) {
    this.#loop = loop;
    this.#observer = observer;
    this.#reporter = reporter;
  }

  /** A hint about a possible swap. The other hints of the burst add nothing, unless they name the link. */
  swapHinted(path: string, cause: ChangeCause): void {
    const { state } = this.#loop;
    if (state === 'checking') return;
    if (state === 'requested' && !this.#observer.isSwap(path)) return;
    const swap = this.#observer.readSwap();
    if (swap) this.#reporter.considerSwap(swap, cause);
  }

  /** A hint of a backend that reports writes: without them it is unknown whether a new file is complete. */
  fileHinted(path: string | undefined, written: boolean): void {
    if (this.#loop.state === 'checking') {
      this.#next ??= new ReplacedFiles(this.#observer);
      this.#next.missed(path);
      return;
    }
    if (this.#observer.isSwapped) return;
    this.#replaced ??= new ReplacedFiles(this.#observer);
    this.#replaced.hinted(path, written);
  }

  /** A check begins. */
  checking(cause: ChangeCause): void {
    const replaced = this.#replaced?.take();
    if (replaced && replaced.length > 0) this.#reporter.considerReplaced(replaced, cause);
  }

  /** A check has ended. */
  checked(): void {
    const { pendingPaths } = this.#reporter;
    this.#replaced = this.#next;
    this.#next = undefined;
    if (pendingPaths.size === 0) return;
    this.#replaced ??= new ReplacedFiles(this.#observer);
    this.#replaced.await(pendingPaths);
  }
}
