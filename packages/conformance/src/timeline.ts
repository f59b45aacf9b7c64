/** Records what was published and what the program has shown, and judges it. */
import { sha256 } from './contents.js';

/** The verdict on a sequence. */
export type Verdict = 'silent' | 'false' | 'torn' | 'missed' | 'late' | 'right';

/** A state of the file. */
interface State {
  readonly digest: string;
  /**
   * `held`: stays until it was shown, at most for the deadline. `passing`: may be passed over. `partial`: half of what
   * is being written.
   */
  readonly kind: 'held' | 'passing' | 'partial';
  /** When the publication began, ms of the monotonic clock. */
  readonly from: number;
  /** When the next publication began. */
  until: number;
  /** When the program first showed the state. */
  shownAt: number | undefined;
  isLate: boolean;
}

/** A part that is not continued for this long is a complete file to any reader that does not know the format, ms. */
const PART_MS = 40;

/** The states of one sequence. */
export class Timeline {
  /** The time from the beginning of each publication made in one step to the line of the program, ms. */
  readonly delays: number[] = [];
  /** The number of lines that repeat the previous one: needless notifications. */
  repeats = 0;
  readonly #states: State[] = [];
  /** What false lines claimed. */
  readonly #falsehoods: string[] = [];
  /** The index of the state that the program shows; -1 before the first line. */
  #shown = -1;
  /** Lines that are no digests. */
  #others = 0;
  #firstOther: string | undefined;

  /** Whether the program has shown anything. */
  get hasLine(): boolean {
    return this.#shown >= 0 || this.#falsehoods.length > 0;
  }

  /** Whether the program shows the newest state. */
  get isCurrent(): boolean {
    return this.#shown >= 0 && this.#states[this.#shown]?.digest === this.#states.at(-1)?.digest;
  }

  /** Adds the state that is about to be published. */
  add(content: string, kind: State['kind'], now: number): void {
    const last = this.#states.at(-1);
    if (last) last.until = now;
    const digest = sha256(content);
    this.#states.push({ digest, kind, from: now, until: Infinity, shownAt: undefined, isLate: false });
  }

  /** The newest state has been shown; late unless `isInTime`. */
  accept(now: number, isTimed: boolean, isInTime: boolean): void {
    const state = this.#states.at(-1);
    if (state?.kind !== 'held') return;
    // The program may have shown the same content before it was published again.
    if (isTimed && state.shownAt !== undefined) this.delays.push(state.shownAt - state.from);
    state.shownAt ??= now;
    state.isLate = !isInTime;
  }

  /** The name of the newest state. */
  get newest(): string {
    return `state ${this.#states.length}`;
  }

  /** Adds a line of the program that is no digest. */
  other(line: string): void {
    this.#others += 1;
    this.#firstOther ??= line.slice(0, QUOTED);
  }

  /** Adds a line of the program, and returns what it says. */
  line(digest: string, now: number): string {
    const shown = this.#states[this.#shown];
    const index = this.#states.findIndex(
      (state, at) => at >= Math.max(0, this.#shown) && state.digest === digest,
    );
    const state = this.#states[index];
    if (state === undefined) {
      const isOld = this.#states.some((earlier) => earlier.digest === digest);
      const says = isOld ? 'went back to an earlier state' : `showed what never existed${guess(digest)}`;
      this.#falsehoods.push(says);
      return `${digest.slice(0, 12)}…: ${says}`;
    }
    if (state === shown) this.repeats += 1;
    this.#shown = index;
    state.shownAt ??= now;
    return `shows state ${index + 1}${state === shown ? ' again' : ''}`;
  }

  /** The verdict, if the process has not crashed. */
  judge(): { readonly verdict: Verdict; readonly says: string } {
    if (!this.hasLine) return { verdict: 'silent', says: this.#silence() };
    const [falsehood] = this.#falsehoods;
    if (falsehood !== undefined)
      return { verdict: 'false', says: `${falsehood} (${this.#falsehoods.length} ×)` };
    const torn = this.#states.filter(
      ({ kind, shownAt, from, until }) =>
        kind === 'partial' && shownAt !== undefined && until - from < PART_MS,
    );
    if (torn.length > 0)
      return { verdict: 'torn', says: `showed ${torn.length} × an empty or half-written file` };
    const held = this.#states.filter(({ kind }) => kind === 'held');
    const shown = held.filter(({ shownAt }) => shownAt !== undefined).length;
    if (shown < held.length) {
      const missed = held.find(({ shownAt }) => shownAt === undefined);
      const number = missed === undefined ? 0 : this.#states.indexOf(missed) + 1;
      const says = `update ${shown + 1} (state ${number}) was never shown; the last one shown is state ${this.#shown + 1}`;
      return { verdict: 'missed', says };
    }
    if (!this.isCurrent) return { verdict: 'missed', says: 'the last state was not the last one shown' };
    const late = held.filter(({ isLate }) => isLate).length;
    if (late > 0) return { verdict: 'late', says: `${late} of ${held.length} updates after the deadline` };
    return { verdict: 'right', says: `${shown} of ${held.length} updates` };
  }
  #silence(): string {
    if (this.#firstOther === undefined) {
      return 'printed nothing, and still runs: it hangs, has not read the file since it is there, or does not flush its output';
    }
    const first = JSON.stringify(this.#firstOther);
    return `printed ${this.#others} lines, but no SHA-256 in hexadecimal (64 digits, alone on a line); the first line is ${first}`;
  }
}

/** How much of a line is quoted, characters. */
const QUOTED = 80;

/** What a digest may be of, if it is of no state. */
function guess(digest: string): string {
  if (digest === sha256('')) return ' (the SHA-256 of an empty file)';
  return ' (of half a file, of the contents with something added, or of another file)';
}
