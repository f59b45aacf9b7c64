import type { LoadedSource } from './loaded-source.js';

/**
 * The sources whose newest values were not healthy in a trial. Nobody knows which of those that were in it together was
 * to blame, so a change of one makes the others worth another trial.
 *
 * | a source of a trial changes            | then tried                                     |
 * |----------------------------------------|------------------------------------------------|
 * | and it was in no other                 | it, with the others of that trial              |
 * | and it was in several                  | it, with the others of all of them             |
 * | and is not healthy with the others     | it alone: they do not keep it back             |
 */
export class RevertedSources {
  #trials: readonly ReadonlySet<LoadedSource>[] = [];

  /** Remembers a trial that failed. */
  add(sources: Iterable<LoadedSource>): void {
    this.#trials = [...this.#trials, new Set(sources)];
  }

  /** Makes pending again what was in a trial with sources that have changed, and returns the sources of those trials. */
  retryWith(changed: ReadonlySet<LoadedSource>): ReadonlySet<LoadedSource> {
    const isOver = (trial: ReadonlySet<LoadedSource>): boolean =>
      [...trial].some((each) => changed.has(each));
    const related = new Set(this.#trials.filter(isOver).flatMap((trial) => [...trial]));
    this.#trials = this.#trials.filter((trial) => !isOver(trial));
    for (const source of related) source.retry();
    return related;
  }
}
