import type { BigIntStats } from 'node:fs';

import { onNextTurn } from '../core/event-loop.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { makeCall, type Ask, type Call } from './effects.js';
import { signatureOf } from './file-identity.js';
import { MAX_FILES_AT_ONCE, type Turn, type VolumeSignature } from './observation.js';
import { volumeSignature } from './volume-signature.js';

/** Checks in the turn that it has requested. */
export interface TurnTaker {
  onTurn(): void;
}

/** The answers of `readlink` and of `lstat`. */
type Answer = string | BigIntStats;

/** What is known in a stretch: answers by the question, and volumes by the path of their `..data` link. */
type Known = Map<string, Answer | VolumeSignature>;

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
class SharedTurn implements Turn {
  #waiting = new Set<TurnTaker>();
  #isScheduled = false;
  #answers: Map<FileSystemCalls, Known> | undefined;
  /** The number of checks in this stretch. */
  #size = 0;

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
    const known = this.#knownOf(calls, this.#answers);
    const question = `${name} ${path}`;
    const before = known.get(question) as Answer | undefined;
    if (before !== undefined && !isFresh) return before;
    const answer = this.#make(call, calls) as Answer;
    if (before !== undefined && !isSame(before, answer)) this.#answers.clear();
    else known.set(question, answer);
    return answer;
  };

  get slices(): number {
    return Math.ceil(this.#size / MAX_FILES_AT_ONCE);
  }

  volume(link: string, timestampMs: number | undefined, calls: FileSystemCalls): VolumeSignature {
    if (!this.#answers) return volumeSignature(link, timestampMs, calls);
    const known = this.#knownOf(calls, this.#answers);
    let volume = known.get(link) as VolumeSignature | undefined;
    if (!volume) known.set(link, (volume = volumeSignature(link, timestampMs, calls)));
    return volume;
  }

  #knownOf(calls: FileSystemCalls, answers: Map<FileSystemCalls, Known>): Known {
    let known = answers.get(calls);
    if (!known) answers.set(calls, (known = new Map<string, Answer | VolumeSignature>()));
    return known;
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

/** The shared turn of this process. Between turns it holds nothing. */
export const sharedTurn = new SharedTurn();
