/**
 * What happened in a sequence, in its order: system calls of the publisher, lines of the program, and what was
 * expected.
 */

/** Who did it: the publisher, the suite that expects something, or the program on one of its streams. */
export type Actor = 'call' | 'suite' | 'stdout' | 'stderr';

interface Entry {
  readonly at: number;
  readonly actor: Actor;
  readonly text: string;
}

/** A sequence with a burst makes thousands of calls; the first and the last ones explain it. */
const KEPT = 1_000;
const SHOWN = 40;
const LONGEST_TEXT = 160;

/** The record of one sequence. */
export class SequenceRecord {
  readonly #began = performance.now();
  readonly #directory: () => string;
  #entries: Entry[] = [];
  #dropped = 0;

  /** @param directory left out of paths. */
  constructor(directory: () => string) {
    this.#directory = directory;
  }

  add(actor: Actor, text: string): void {
    const short = text.replaceAll(`${this.#directory()}/`, '');
    const shown = short.length > LONGEST_TEXT ? `${short.slice(0, LONGEST_TEXT)}…` : short;
    this.#entries.push({ at: performance.now() - this.#began, actor, text: shown });
    if (this.#entries.length < KEPT * 2) return;
    this.#dropped += this.#entries.length - KEPT;
    this.#entries = this.#entries.slice(-KEPT);
  }

  /** The end of the record, a line for each entry: the time in ms, who, what. */
  lines(): string[] {
    const shown = this.#entries.slice(-SHOWN);
    const left = this.#dropped + this.#entries.length - shown.length;
    return [
      ...(left > 0 ? [`(${left} earlier ones are left out)`] : []),
      ...shown.map(({ at, actor, text }) => `${at.toFixed(1).padStart(9)} ms  ${actor.padEnd(6)}  ${text}`),
    ];
  }
}
