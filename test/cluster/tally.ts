/** What the observers printed, against what was published. */

export interface Line {
  readonly who: string;
  readonly at: number;
  readonly sequence?: number | null;
  readonly false?: boolean;
  readonly died?: string;
  /** Since the process itself saw the swap, ms. */
  readonly afterSwapMs?: number;
}

export interface Row {
  readonly observer: string;
  readonly seen: number;
  readonly missed: number;
  readonly false: number;
  /** Behind the first observer of the same volume to see the update, ms; undefined when it saw none. */
  readonly medianMs: number | undefined;
  readonly maxMs: number | undefined;
  /** Behind a bare `fs.watch` of its own process, ms: without the wait for a CPU, which all observers share. */
  readonly medianAfterSwapMs: number | undefined;
  /** Why it ended before the test did. */
  readonly died: string | undefined;
}

/** The lines of a log. What is no line of an observer is left out. */
export function linesOf(log: string): Line[] {
  return log.split('\n').flatMap((text) => {
    try {
      const line: unknown = JSON.parse(text);
      return typeof line === 'object' && line !== null && 'who' in line ? [line as Line] : [];
    } catch {
      return [];
    }
  });
}

/**
 * A row for each observer of one volume.
 * @param logs what each observer printed, by its name
 * @param published the numbers of the updates that kubelet delivered: those that anybody saw
 */
export function tally(logs: ReadonlyMap<string, string>): Row[] {
  const lines = new Map([...logs].map(([observer, log]) => [observer, linesOf(log)]));
  const first = new Map<number, number>();
  for (const { sequence, at } of [...lines.values()].flat()) {
    if (typeof sequence === 'number') first.set(sequence, Math.min(first.get(sequence) ?? Infinity, at));
  }
  return [...lines].map(([observer, printed]) => rowOf(observer, printed, first));
}

function rowOf(observer: string, printed: readonly Line[], first: ReadonlyMap<number, number>): Row {
  const seen = new Map<number, Line>();
  for (const line of printed) {
    const { sequence } = line;
    if (typeof sequence === 'number' && !seen.has(sequence)) seen.set(sequence, line);
  }
  // What was there at the start, each saw when its container ran.
  const updates = [...seen].filter(([sequence]) => sequence > 0);
  const delays = sorted(updates.map(([sequence, { at }]) => at - (first.get(sequence) ?? at)));
  const afterSwap = sorted(updates.flatMap(([, { afterSwapMs }]) => afterSwapMs ?? []));
  return {
    observer,
    seen: seen.size,
    missed: first.size - seen.size,
    false: printed.filter((line) => line.false).length,
    medianMs: medianOf(delays),
    maxMs: delays.at(-1),
    medianAfterSwapMs: medianOf(afterSwap),
    died: printed.find(({ died }) => died !== undefined)?.died,
  };
}

function sorted(values: readonly number[]): number[] {
  return values.toSorted((one, other) => one - other);
}

function medianOf(ascending: readonly number[]): number | undefined {
  return ascending[Math.floor(ascending.length / 2)];
}

/** The rows as a table in Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const ms = (value: number | undefined): string =>
    value === undefined ? '' : `${Number(value.toFixed(2))} ms`;
  const cells = rows.map(({ observer, seen, missed, false: wrong, ...row }) =>
    [
      observer,
      seen,
      missed,
      wrong,
      ms(row.medianMs),
      ms(row.maxMs),
      ms(row.medianAfterSwapMs),
      row.died ?? '',
    ].join(' | '),
  );
  const head =
    'observer | seen | missed | false | median after the first | most | median after its own fs.watch | died';
  return [head, '--- | --: | --: | --: | --: | --: | --: | ---', ...cells]
    .map((line) => `| ${line} |`)
    .join('\n');
}
