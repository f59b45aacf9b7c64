import { onNextTurn } from '../core/event-loop.js';
import type { FileSystemCalls } from '../core/file-system.js';
import { makeCall, type Call } from './effects.js';

/**
 * Takes the checks of all watchers that want one in the same turn of the event loop, one right after the other, and
 * asks the disk once for what they have in common: the directories and links on the way. A thousand watchers of
 * one volume share all but the last steps.
 *
 * Why no check is stale: what is shared lives only while `#take` runs, which is one uninterrupted stretch of
 * synchronous code. Every hint that led to these checks came before it, so every answer is younger than the hint.
 * No hint can come during it; one that comes later leads to a check in a later turn, which starts with nothing.
 * No watch is opened during it either: aiming follows in promise jobs, and the check after that shares nothing. So
 * a shared look sees what a check at the beginning of the stretch would have seen. When that cannot be, because a
 * link was retargeted meanwhile and its old target is gone, a call fails, and a failure forgets all answers:
 * the walk is repeated with fresh ones.
 */
class SharedTurn {
  #waiting = new Set<() => void>();
  #immediate: (() => void) | undefined;
  #answers: Map<FileSystemCalls, Map<string, unknown>> | undefined;

  /** Takes `look` in the coming turn, after what the kernel has to say in this one. Returns what cancels it. */
  request(look: () => void): () => void {
    this.#waiting.add(look);
    this.#immediate ??= onNextTurn(() => this.#take());
    return () => this.#waiting.delete(look);
  }

  /** Makes a call, or answers what was asked in this stretch already. */
  readonly ask = (call: Call, calls: FileSystemCalls): unknown => {
    if (!this.#answers) return makeCall(call, calls);
    const [name, path] = call;
    if (name !== 'lstat' && name !== 'readlink') return this.#make(call, calls);
    let known = this.#answers.get(calls);
    if (!known) this.#answers.set(calls, (known = new Map<string, unknown>()));
    const question = `${name} ${path}`;
    const answer = known.get(question) ?? this.#make(call, calls);
    known.set(question, answer);
    return answer;
  };

  #make(call: Call, calls: FileSystemCalls): unknown {
    try {
      return makeCall(call, calls);
    } catch (error) {
      this.#answers?.clear();
      throw error;
    }
  }

  #take(): void {
    const looks = this.#waiting;
    this.#waiting = new Set();
    this.#immediate = undefined;
    if (looks.size > 1) this.#answers = new Map();
    try {
      for (const look of looks) look();
    } finally {
      this.#answers = undefined;
    }
  }
}

/** The one turn of this process; it holds nothing between turns. */
export const sharedTurn = new SharedTurn();
