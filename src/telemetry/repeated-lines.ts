import type { Clock, Scheduled } from '../core/ports/clock.js';

const PERIOD_MS = 60_000;

interface Cause {
  print: (more: number) => void;
  more: number;
  timer: Scheduled;
}

/** What a line says of those that were not printed. */
export const sinceLastLine = (more: number): string =>
  more === 0 ? '' : ` (${more} more since the last such line)`;

/**
 * One line for a cause and a minute: the first is printed at once, and the others as a number when the minute is over.
 */
export class RepeatedLines {
  readonly #clock: Clock;
  readonly #causes = new Map<string, Cause>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param cause has few values.
   * @param print prints the line; `more`: how many there were since the last one, 0 for the first.
   */
  say(cause: string, print: (more: number) => void): void {
    const known = this.#causes.get(cause);
    if (known) Object.assign(known, { print, more: known.more + 1 });
    else {
      print(0);
      this.#causes.set(cause, { print, more: 0, timer: this.#later(cause) });
    }
  }

  /** Prints what is left. */
  close(): void {
    for (const { print, more, timer } of this.#causes.values()) {
      timer.cancel();
      if (more > 0) print(more);
    }
    this.#causes.clear();
  }

  #later(cause: string): Scheduled {
    return this.#clock.schedule(() => this.#end(cause), PERIOD_MS, { ref: false });
  }

  #end(cause: string): void {
    const known = this.#causes.get(cause);
    if (!known || known.more === 0) {
      this.#causes.delete(cause);
      return;
    }
    known.print(known.more);
    known.more = 0;
    known.timer = this.#later(cause);
  }
}
