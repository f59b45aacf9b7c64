import type { ConfigProblem } from './config-error.js';
import type { Layer } from './merge.js';
import type { LoadedSource } from './loaded-source.js';

/** The result of validating merged layers. */
export type Verdict<T> = { readonly config: T } | { readonly problems: readonly ConfigProblem[] };

/** Which pending values were accepted. */
interface Acceptance<T> {
  /** The configuration that was accepted last, if any. */
  readonly accepted: { readonly config: T } | undefined;
  /** Why what is still pending was not accepted. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * Accepts the pending values of the sources that pass validation.
 *
 * | step | tried                                              | passes        | fails                               |
 * |------|----------------------------------------------------|---------------|-------------------------------------|
 * | 1    | everything pending, together                       | accepted, end | 2                                   |
 * | 2    | what has just changed, together                    | accepted, 3   | 3                                   |
 * | 3    | what is still pending, one by one, until none pass | accepted      | stays pending until the next change |
 *
 * A bad source therefore does not block the others, and sources that are valid only together are accepted together.
 * @param fresh the sources that have just changed
 */
export async function acceptPending<T>(
  sources: readonly LoadedSource[],
  fresh: ReadonlySet<LoadedSource>,
  validate: (layers: readonly Layer[]) => Promise<Verdict<T>>,
): Promise<Acceptance<T>> {
  const attempt = async (chosen: readonly LoadedSource[]): Promise<Verdict<T>> => {
    const verdict = await validate(sources.map((source) => source.layer(chosen.includes(source))));
    if ('config' in verdict) for (const source of chosen) source.accept();
    return verdict;
  };
  const pending = sources.filter((source) => source.isPending);
  if (pending.length === 0) return { accepted: undefined, problems: [] };
  const whole = await attempt(pending);
  if ('config' in whole) return { accepted: whole, problems: [] };
  if (pending.length === 1) return { accepted: undefined, problems: whole.problems };

  let accepted: { readonly config: T } | undefined;
  const together = pending.filter((source) => fresh.has(source));
  if (together.length > 1 && together.length < pending.length) {
    const verdict = await attempt(together);
    if ('config' in verdict) accepted = verdict;
  }
  for (;;) {
    const problems: ConfigProblem[] = [];
    let progress = false;
    for (const source of pending.filter((one) => one.isPending)) {
      const verdict = await attempt([source]);
      if ('problems' in verdict) problems.push(...verdict.problems);
      else {
        accepted = verdict;
        progress = true;
      }
    }
    if (!progress) return { accepted, problems };
  }
}
