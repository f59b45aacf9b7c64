import picomatch from 'picomatch';

/**
 * What leaves a path out: a glob, an expression or a function of the path relative to the watched directory, with `/`
 * between its parts.
 */
export type IgnorePattern = string | RegExp | ((path: string) => boolean);

/**
 * Patterns of paths relative to a directory. In globs `**` is any number of directories, `*` and `?` stop at `/`, and a
 * leading dot is a character like any other. What is below a match counts as matched, too.
 */
export class PathGlobs {
  /** One expression for each glob, without flags, as `@parcel/watcher` wants them. */
  readonly expressions: readonly RegExp[];
  readonly #predicates: readonly ((path: string) => boolean)[];

  /** @throws {SyntaxError} for a glob that makes no expression. */
  constructor(patterns: readonly IgnorePattern[]) {
    // The options are those with which `@parcel/watcher` reads a glob.
    const options = { dot: true, windows: process.platform === 'win32' };
    this.expressions = globsIn(patterns).map((glob) => new RegExp(picomatch.makeRe(glob, options).source));
    this.#predicates = patterns.flatMap((pattern) => {
      if (typeof pattern === 'function') return [pattern];
      // `search()` does not depend on where a global expression matched last.
      return pattern instanceof RegExp ? [(path: string) => path.search(pattern) !== -1] : [];
    });
  }

  /** Whether this path itself is matched; of what is below a match, its caller is to know. */
  matches(path: string): boolean {
    return (
      this.expressions.some((expression) => expression.test(path)) ||
      this.#predicates.some((isMatched) => isMatched(path))
    );
  }
}

/** The globs among patterns: all that a native backend understands. */
export function globsIn(patterns: readonly IgnorePattern[]): string[] {
  return patterns.filter((pattern) => typeof pattern === 'string');
}
