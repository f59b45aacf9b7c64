import picomatch from 'picomatch';

/**
 * A pattern of ignored paths: a glob, a regular expression or a function of the path relative to the watched
 * directory, with `/` between its parts.
 */
export type IgnorePattern = string | RegExp | ((path: string) => boolean);

/**
 * Patterns of paths relative to a directory. In globs `**` is any number of directories, `*` and `?` do not match
 * `/`, and a leading dot is an ordinary character. Everything below a match counts as matched.
 */
export class PathGlobs {
  /** One regular expression for each glob, without flags, as `@parcel/watcher` wants them. */
  readonly expressions: readonly RegExp[];
  readonly #predicates: readonly ((path: string) => boolean)[];

  /** @throws {SyntaxError} for an invalid glob. */
  constructor(patterns: readonly IgnorePattern[]) {
    // The options with which `@parcel/watcher` reads a glob.
    const options = { dot: true, windows: process.platform === 'win32' };
    this.expressions = globsIn(patterns).map((glob) => new RegExp(picomatch.makeRe(glob, options).source));
    this.#predicates = patterns.flatMap((pattern) => {
      if (typeof pattern === 'function') return [pattern];
      // Unlike `test()`, `search()` does not depend on `lastIndex`.
      return pattern instanceof RegExp ? [(path: string) => path.search(pattern) !== -1] : [];
    });
  }

  /** Whether this path itself is matched. The caller handles what is below a match. */
  matches(path: string): boolean {
    return (
      this.expressions.some((expression) => expression.test(path)) ||
      this.#predicates.some((isMatched) => isMatched(path))
    );
  }
}

/** The globs among the patterns, which are all that a native backend understands. */
export function globsIn(patterns: readonly IgnorePattern[]): string[] {
  return patterns.filter((pattern) => typeof pattern === 'string');
}
