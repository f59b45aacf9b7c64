/** Which of the newest values of the sources are tried, and with which others. */
import type { ConfigProblem } from './config-error.js';
import type { LoadedSource } from './loaded-source.js';
import { validateLayers, type ValidationOptions, type Verdict } from './validation.js';

/** What has become of pending values. A source whose values were accepted is no longer pending. */
interface Acceptance<T> {
  /** The configuration that was accepted last, if any, and what it was merged of. */
  readonly accepted: Extract<Verdict<T>, { readonly config: T }> | undefined;
  /** Why the values that are still pending were not accepted. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * Decides which pending values of the sources are accepted: those that pass validation.
 *
 * | step | tried                                         | passes        | fails                               |
 * |------|-----------------------------------------------|---------------|-------------------------------------|
 * | 1    | all pending values, together                  | accepted, end | step 2                              |
 * | 2    | values that have just changed, together       | accepted, 3   | step 3                              |
 * | 3    | the rest, source by source, until none passes | accepted      | stays pending until the next change |
 *
 * A bad source therefore does not block the others, and sources that are valid only together are accepted together.
 * @param fresh the sources that have just changed
 */
export async function acceptPending<T>(
  sources: readonly LoadedSource[],
  fresh: ReadonlySet<LoadedSource>,
  validation: ValidationOptions<T>,
): Promise<Acceptance<T>> {
  const pending = (): readonly LoadedSource[] => sources.filter((source) => source.isPending);
  let accepted: Acceptance<T>['accepted'];
  /** Returns why these values are not accepted. */
  const attempt = async (chosen: readonly LoadedSource[]): Promise<readonly ConfigProblem[]> => {
    const layers = sources.map((source) => source.layer(chosen.includes(source)));
    const verdict = await validateLayers(layers, validation);
    if ('problems' in verdict) return verdict.problems;
    for (const source of chosen) source.accept();
    accepted = verdict;
    return [];
  };
  const all = pending();
  if (all.length === 0) return { accepted, problems: [] };
  let problems = await attempt(all);
  if (accepted || all.length === 1) return { accepted, problems };
  const together = all.filter((source) => fresh.has(source));
  if (together.length > 1 && together.length < all.length) await attempt(together);
  for (let left = Infinity; pending().length < left;) {
    left = pending().length;
    problems = [];
    for (const source of pending()) problems = [...problems, ...(await attempt([source]))];
  }
  return { accepted, problems };
}

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
