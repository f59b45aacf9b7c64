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
 * | while another one is handled                 | –                                        | noted after it, left to the    |
 * |                                              |                                          | check                          |
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
import type { Hint } from '../core/watch-backend.js';
import type { Observer } from '../fs/observer.js';
import type { ChangeCause } from './change.js';
import type { CheckLoop } from './check-loop.js';
import { ReplacedFiles } from './report/replaced-files.js';
import type { Reporter } from './report/reporter.js';

/** Whoever the hints are for. */
export interface HintNoter {
  /** Whether anything may be read before the check. */
  readonly mayReadEarly: boolean;
  /** Whether there is a backend that reports writes: without them it is unknown whether a new file is complete. */
  readonly reportsWrites: boolean;
  /** Notes what the hint is about, for the check that it leads to. */
  note(cause: ChangeCause, hint: Hint): void;
}

/** Reads in the callback of a hint, and reports before the check. */
export class EarlyReport {
  readonly #owner: HintNoter;
  readonly #loop: CheckLoop<ChangeCause>;
  readonly #observer: Observer;
  readonly #reporter: Reporter;
  /** From the first hint until the check, or as long as a file is pending. */
  #replaced: ReplacedFiles | undefined;
  /** What hints were about since the check under way began; the next check reports it. */
  #next: ReplacedFiles | undefined;
  /** The hints that were given while one is handled; undefined: none is. */
  #within: [ChangeCause, Hint][] | undefined;

  constructor(owner: HintNoter, loop: CheckLoop<ChangeCause>, observer: Observer, reporter: Reporter) {
    this.#owner = owner;
    this.#loop = loop;
    this.#observer = observer;
    this.#reporter = reporter;
  }

  /**
   * Handles a hint. One that is given meanwhile, by a listener or from within a call of a user's FileSystem, is noted
   * after it and left to the check: otherwise what was read first could be reported last.
   */
  hinted(cause: ChangeCause, hint: Hint): void {
    if (this.#within) {
      this.#within.push([cause, hint]);
      return;
    }
    const within: [ChangeCause, Hint][] = (this.#within = []);
    const owner = this.#owner;
    try {
      if (owner.mayReadEarly) {
        if (hint.path !== undefined) this.#swapHinted(hint.path, cause);
        if (owner.reportsWrites) this.#fileHinted(hint);
      }
    } finally {
      this.#within = undefined;
    }
    owner.note(cause, hint);
    if (within.length === 0) return;
    this.#leave();
    for (const each of within) owner.note(...each);
  }

  /** A hint about a possible swap. The other hints of the burst add nothing, unless they name the link. */
  #swapHinted(path: string, cause: ChangeCause): void {
    const { state } = this.#loop;
    if (state === 'checking') return;
    if (state === 'requested' && !this.#observer.isSwap(path)) return;
    const swap = this.#observer.readSwap();
    if (swap) this.#reporter.considerSwap(swap, cause);
  }

  #fileHinted({ path, written = false }: Hint): void {
    if (this.#loop.state === 'checking') {
      this.#next ??= this.#create();
      this.#next.missed(path);
      return;
    }
    if (this.#observer.isSwapped) return;
    this.#replaced ??= this.#create();
    this.#replaced.hinted(path, written);
  }

  /** Everything is left to the next check. */
  #leave(): void {
    const isUnderWay = this.#loop.state === 'checking';
    const replaced = isUnderWay ? (this.#next ??= this.#create()) : (this.#replaced ??= this.#create());
    replaced.leave();
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
    this.#replaced ??= this.#create();
    this.#replaced.await(pendingPaths);
  }

  #create(): ReplacedFiles {
    return new ReplacedFiles(this.#observer);
  }
}
