import { randomOf } from '../support/seeded-random.mjs';

/**
 * Every decision of a schedule: what is published, and who goes on. They come from a seed, or from a list of earlier
 * decisions, which shrinking and exhaustive exploration change. 0 is always the simplest one.
 */
export class Choices {
  readonly made: number[] = [];
  /** How many there were to choose from. */
  readonly counts: number[] = [];
  readonly #random: () => number;
  readonly #given: readonly number[] | undefined;

  constructor(seed: number, given?: readonly number[]) {
    this.#random = randomOf(seed);
    this.#given = given;
  }

  /** A number below `count`. @param chance how probable it is that it is not 0. */
  choose(count: number, chance = 1 - 1 / count): number {
    let choice = 0;
    if (this.#given) choice = Math.min(this.#given[this.made.length] ?? 0, count - 1);
    else if (count > 1 && this.#random() < chance) choice = 1 + Math.floor(this.#random() * (count - 1));
    this.made.push(choice);
    this.counts.push(count);
    return choice;
  }

  /** One of these; the first is the simplest. */
  oneOf<T>(these: readonly T[]): T {
    return these[this.choose(these.length)] as T;
  }
}
