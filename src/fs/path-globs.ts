import picomatch from 'picomatch';

/**
 * Globs that name paths relative to a directory, `/` between their parts: `**` is any number of directories, `*` and
 * `?` stop at `/`, a leading dot is a character like any other. What is below a match counts as matched, too.
 */
export class PathGlobs {
  /** One expression for each glob, without flags, as `@parcel/watcher` wants them. */
  readonly expressions: readonly RegExp[];

  /** @throws {SyntaxError} for a glob that makes no expression. */
  constructor(globs: readonly string[]) {
    // The options are those with which `@parcel/watcher` reads a glob.
    const options = { dot: true, windows: process.platform === 'win32' };
    this.expressions = globs.map((glob) => new RegExp(picomatch.makeRe(glob, options).source));
  }

  /** Whether this path itself is matched; of what is below a match, its caller is to know. */
  matches(path: string): boolean {
    return this.expressions.some((expression) => expression.test(path));
  }
}
