import type { ConfigProblem } from '../core/errors.js';
import type { ConfigMap } from './config-value.js';
import { isSame } from './difference.js';

/** What validating some values leads to. */
export type Verdict<T> = { readonly config: T } | { readonly problems: readonly ConfigProblem[] };

/** What became of the newest states. */
export interface Settlement<T> {
  /** What was accepted last, if anything was. */
  readonly accepted: { readonly config: T } | undefined;
  /** Why what waits was not. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * What each source holds: the state that is in the configuration (accepted), and the newest good one if it is not
 * (waiting), because together with the others it did not pass.
 *
 * | step | tried                                             | passes            | fails                    |
 * |------|---------------------------------------------------|-------------------|--------------------------|
 * | 1    | everything that waits, together                   | accepted, the end | 2                        |
 * | 2    | what has just changed, together                   | accepted, 3       | 3                        |
 * | 3    | what still waits, one by one, while one is taken  | accepted, go on   | it waits: tried again at |
 * |      |                                                   |                   | the next change          |
 *
 * So a source that is wrong holds up no other, and sources that are right only together are taken together.
 */
export class Layers<T> {
  readonly #validate: (layers: readonly ConfigMap[]) => Promise<Verdict<T>>;
  readonly #accepted: ConfigMap[];
  readonly #waiting = new Map<number, ConfigMap>();

  constructor(
    accepted: readonly ConfigMap[],
    validate: (layers: readonly ConfigMap[]) => Promise<Verdict<T>>,
  ) {
    this.#accepted = [...accepted];
    this.#validate = validate;
  }

  /** Takes in a source's newest good state. True when it is not what was taken in last. */
  take(index: number, values: ConfigMap): boolean {
    if (isSame(values, this.#waiting.get(index) ?? this.#accepted[index])) return false;
    if (isSame(values, this.#accepted[index])) this.#waiting.delete(index);
    else this.#waiting.set(index, values);
    return true;
  }

  /** Whether the newest good state of a source is not accepted. */
  isWaiting(index: number): boolean {
    return this.#waiting.has(index);
  }

  /** Accepts what passes. @param fresh the sources that have just changed */
  async settle(fresh: ReadonlySet<number>): Promise<Settlement<T>> {
    const all = [...this.#waiting.keys()].sort((a, b) => a - b);
    if (all.length === 0) return { accepted: undefined, problems: [] };
    const whole = await this.#try(all);
    if ('config' in whole) return { accepted: whole, problems: [] };
    if (all.length === 1) return { accepted: undefined, problems: whole.problems };

    let accepted: { readonly config: T } | undefined;
    const together = all.filter((index) => fresh.has(index));
    if (together.length > 1 && together.length < all.length) {
      const verdict = await this.#try(together);
      if ('config' in verdict) accepted = verdict;
    }
    for (;;) {
      const problems: ConfigProblem[] = [];
      let progress = false;
      for (const index of all.filter((one) => this.#waiting.has(one))) {
        const verdict = await this.#try([index]);
        if ('problems' in verdict) problems.push(...verdict.problems);
        else {
          accepted = verdict;
          progress = true;
        }
      }
      if (!progress) return { accepted, problems };
    }
  }

  async #try(chosen: readonly number[]): Promise<Verdict<T>> {
    const candidate = this.#accepted.map((values, index) =>
      chosen.includes(index) ? (this.#waiting.get(index) ?? values) : values,
    );
    const verdict = await this.#validate(candidate);
    if ('config' in verdict) {
      for (const index of chosen) {
        this.#accepted[index] = candidate[index] ?? {};
        this.#waiting.delete(index);
      }
    }
    return verdict;
  }
}
