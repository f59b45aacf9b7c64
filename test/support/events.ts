/** The events that the program prints with `--json`. */

/** A program, in this process or in one of its own. */
interface Printing {
  readonly stdout: string;
  when<T>(find: () => T | undefined, wanted: string): Promise<T>;
}

/** One event. */
export interface Line {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** All events so far. */
export const linesOf = ({ stdout }: Printing): Line[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

/** The first event of this name that fits. */
export const event = (
  program: Printing,
  name: string,
  fits: (line: Line) => boolean = () => true,
): Promise<Line> =>
  program.when(() => linesOf(program).find((line) => line.event === name && fits(line)), name);

/** The revisions for which the actions have succeeded. */
export const revisionsIn = ({ update }: Line): unknown[] =>
  (update as { paths: { revision: string | null }[] }).paths.map(({ revision }) => revision);

/** When the actions have succeeded for this revision. */
export const succeededWith = (program: Printing, revision: string | undefined): Promise<Line> =>
  event(program, 'succeeded', (line) => revisionsIn(line).includes(revision));
