import type { BigIntStats } from 'node:fs';

import { onNextTurn } from '../core/event-loop.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { makeCall, type Ask, type Call } from './effects.js';
import { signatureOf } from './file-identity.js';
import { VERIFIED_AT_ONCE } from './observation.js';

/** Checks in the turn that it has requested. */
export interface TurnTaker {
  onTurn(): void;
}

/** The answers of `readlink` and of `lstat`. */
type Answer = string | BigIntStats;

/**
 * Runs the checks of all watchers that want one in the same turn of the event loop one right after the other, and asks
 * the disk once for what they have in common: the directories and links on the way. A thousand watchers of one volume
 * share all but the last calls.
 *
 * Why no check is stale: what is shared lives only while `#run` runs, which is one uninterrupted stretch of
 * synchronous code. Every hint that led to these checks came before it, so every answer is younger than the hint.
 * No hint can come during it; one that comes later leads to a check in a later turn, which starts with nothing.
 *
 * Why no set is torn: the files of a set are read one after another, so a swap may come between them, also within the
 * stretch. The proof that the set stood still is asked `freshly`, and an answer that differs from the shared one
 * drops all of them, as does a call that fails: the read is repeated with fresh answers.
 */
class SharedTurn {
  #waiting = new Set<TurnTaker>();
  #isScheduled = false;
  #answers: Map<FileSystemCalls, Map<string, Answer>> | undefined;
  /** The number of checks in this stretch. */
  #size = 0;
  #turns = 0;

  /** Calls `onTurn` in the next turn, once, after the events that the kernel reports in this one. */
  request(taker: TurnTaker): void {
    this.#waiting.add(taker);
    if (!this.#isScheduled) onNextTurn(() => this.#run());
    this.#isScheduled = true;
  }

  cancel(taker: TurnTaker): void {
    this.#waiting.delete(taker);
  }

  /** Makes a call, or returns the answer that was obtained in this stretch already. */
  readonly ask: Ask = (call, calls, isFresh) => {
    if (!this.#answers) return makeCall(call, calls);
    const [name, path] = call;
    if (name !== 'lstat' && name !== 'readlink') return this.#make(call, calls);
    let known = this.#answers.get(calls);
    if (!known) this.#answers.set(calls, (known = new Map<string, Answer>()));
    const question = `${name} ${path}`;
    const before = known.get(question);
    if (before !== undefined && !isFresh) return before;
    const answer = this.#make(call, calls) as Answer;
    if (before !== undefined && !isSame(before, answer)) this.#answers.clear();
    else known.set(question, answer);
    return answer;
  };

  /**
   * Whether it is the turn of the file with this inode number to be examined. All are examined in each turn, unless there
   * are more than `VERIFIED_AT_ONCE`: then as many, so that a file is examined once in (checks / `VERIFIED_AT_ONCE`) turns.
   */
  isTurnOf(inode: number): boolean {
    const slices = Math.ceil(this.#size / VERIFIED_AT_ONCE);
    return slices <= 1 || (inode + this.#turns) % slices === 0;
  }

  #make(call: Call, calls: FileSystemCalls): unknown {
    try {
      return makeCall(call, calls);
    } catch (error) {
      this.#answers?.clear();
      throw error;
    }
  }

  #run(): void {
    const takers = this.#waiting;
    this.#waiting = new Set();
    this.#isScheduled = false;
    if (takers.size > 1) this.#answers = new Map();
    this.#size = takers.size;
    this.#turns += 1;
    try {
      for (const taker of takers) taker.onTurn();
    } finally {
      this.#answers = undefined;
      this.#size = 0;
    }
  }
}

function isSame(one: Answer, other: Answer): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other;
  return signatureOf(one) === signatureOf(other);
}

/** The shared turn of this process. Between turns it holds nothing but their number. */
export const sharedTurn = new SharedTurn();
