/**
 * Matches paths, relative to a directory and with `/` between the names, against patterns.
 *
 * | in a glob       | matches                                                                |
 * |-----------------|------------------------------------------------------------------------|
 * | `**` as a name  | any number of names, or none; at the end, also the directory before it |
 * | `*`             | any number of characters of a name, including a leading dot            |
 * | `?`             | one character                                                          |
 * | `[a-z]`, `[!a]` | one character that is in the set, or not in it                         |
 * | `{a,b/c}`       | each alternative                                                       |
 * | `\`             | the next character stands for itself                                   |
 *
 * Names may come from a hostile user, so the time of a match is bounded by the product of the lengths of the glob and
 * the path: at each mismatch, the latest `*` takes one more character, and no earlier `*` is reconsidered.
 */
import { ListenerError } from '../core/errors/errors.js';
import {
  describe,
  hasMethods,
  isNonEmptyString,
  type Mismatch,
  type Option,
} from '../core/options/options.js';

/**
 * A pattern of paths that are ignored, or included: a glob, a regular expression or a function of the path relative to
 * the watched directory, with `/` between its parts.
 */
export type IgnorePattern = string | RegExp | ((path: string) => boolean);

/** Accepts one character of a name. */
type Character = (character: string) => boolean;

/** A star, or one character. */
type Part = '*' | Character;

/** Any number of names, or one. */
type Segment = '**' | readonly Part[];

/** A glob with more alternatives than this is a mistake. */
const MAX_ALTERNATIVES = 1_000;

/** Patterns of paths. */
export class Globs {
  /** What editors have beside a file while it is saved or open: vim, emacs, and whatever makes a backup. */
  static readonly LEFTOVERS = ['**/.*.sw?', '**/4913', '**/*~', '**/.#*', '**/#*#', '**/.goutputstream-*'];
  readonly #globs: readonly (readonly Segment[])[];
  readonly #predicates: readonly ((path: string) => boolean)[];
  readonly #option: string;

  /**
   * @param option the name of the option that they are from.
   * @throws {SyntaxError} for an invalid glob.
   */
  constructor(patterns: readonly IgnorePattern[], option = 'ignore') {
    this.#option = option;
    const globs = patterns.filter((pattern) => typeof pattern === 'string');
    this.#globs = globs.flatMap((glob) => alternatives(glob).map(parse));
    this.#predicates = patterns.flatMap((pattern) => {
      if (typeof pattern === 'function') return [pattern];
      // Unlike `test()`, `search()` does not depend on `lastIndex`.
      return pattern instanceof RegExp ? [(path: string) => path.search(pattern) !== -1] : [];
    });
  }

  /**
   * Whether this path itself is matched. The caller handles the paths below a match.
   * @throws {ListenerError} if a function fails.
   */
  matches(path: string): boolean {
    if (this.#globs.length > 0) {
      const names = path.split('/').map((name) => Array.from(name));
      if (this.#globs.some((glob) => matchesPath(glob, names))) return true;
    }
    try {
      return this.#predicates.some((isMatched) => answerOf(isMatched(path)));
    } catch (error) {
      throw new ListenerError(this.#option, error);
    }
  }
}

/** An option of patterns. @param example a glob, for the message */
export function patterns<T>(fallback: T, example: string): Option<readonly IgnorePattern[] | T> {
  const wanted = `an array of globs such as "${example}", regular expressions and functions`;
  const problemOf = (pattern: unknown): string | undefined => {
    if (pattern instanceof RegExp || typeof pattern === 'function') return undefined;
    if (!isNonEmptyString(pattern)) return describe(pattern);
    try {
      alternatives(pattern).forEach(parse);
      return undefined;
    } catch (error) {
      return `${JSON.stringify(pattern)}, which ${(error as Error).message}`;
    }
  };
  const refuse = (value: unknown): Mismatch | undefined => {
    if (!Array.isArray(value)) return { kind: 'type', wanted };
    const got = value.map(problemOf).find((problem) => problem !== undefined);
    return got === undefined ? undefined : { kind: 'type', wanted, got };
  };
  return { fallback, refuse };
}

/** A promise would count as true, and everything would be ignored. */
function answerOf(answer: unknown): boolean {
  if (hasMethods(answer, ['then'])) {
    throw new TypeError('it must return a boolean, got a promise');
  }
  return Boolean(answer);
}

function matchesPath(glob: readonly Segment[], names: readonly (readonly string[])[]): boolean {
  return matchesSequence(glob, names, '**', (name, segment: readonly Part[]) => matchesName(segment, name));
}

function matchesName(parts: readonly Part[], name: readonly string[]): boolean {
  return matchesSequence(parts, name, '*', (character, accepts: Character) => accepts(character));
}

/** Whether a pattern matches an entire sequence; in the pattern, `any` matches any number of elements. */
function matchesSequence<P extends object, A extends string, E>(
  pattern: readonly (P | A)[],
  sequence: readonly E[],
  any: A,
  matches: (element: E, part: P) => boolean,
): boolean {
  let part = 0;
  let element = 0;
  /** The position after the latest `any`, and where the rest of the pattern was last tried. */
  let retryPart = -1;
  let retryElement = 0;
  while (element < sequence.length) {
    const wanted = pattern[part];
    if (wanted === any) {
      part += 1;
      [retryPart, retryElement] = [part, element];
    } else if (wanted !== undefined && matches(sequence[element] as E, wanted as P)) {
      part += 1;
      element += 1;
    } else if (retryPart >= 0) {
      retryElement += 1;
      [part, element] = [retryPart, retryElement];
    } else return false;
  }
  return pattern.slice(part).every((rest) => rest === any);
}

/** A pair of braces without another one in it. */
const INNERMOST = /^((?:\\.|[^\\])*?)\{((?:\\.|[^\\{}])*)\}(.*)$/su;

/** Expands the braces of a glob. */
function alternatives(glob: string): string[] {
  const found: string[] = [];
  const rest = [glob];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [, before = '', choices, after = ''] = INNERMOST.exec(next) ?? [];
    if (choices !== undefined) {
      // At commas that are not escaped.
      for (const choice of choices.split(/(?<=(?<!\\)(?:\\\\)*),/)) rest.push(`${before}${choice}${after}`);
    } else if (/^(?:\\.|[^\\{])*\{/su.test(next)) {
      throw new SyntaxError('has a "{" without a "}"');
    } else found.push(next);
    if (rest.length + found.length > MAX_ALTERNATIVES) {
      throw new SyntaxError(`has more than ${MAX_ALTERNATIVES} alternatives`);
    }
  }
  return found;
}

function parse(glob: string): Segment[] {
  if (glob.startsWith('!') || /(?<!\\)[?*+@!]\(/.test(glob)) {
    throw new SyntaxError('begins with "!" or has a "(": use a regular expression or a function');
  }
  if (glob.startsWith('/'))
    throw new SyntaxError('is absolute: what it matches is relative to the directory');
  const segments = glob
    .replace(/^(?:\.\/)+/, '')
    .replace(/\/+$/, '')
    .split('/');
  const odd = segments.find((segment) => ['', '.', '..'].includes(segment));
  if (odd !== undefined) throw new SyntaxError(`matches nothing: no path has "${odd}" between its slashes`);
  return segments.map((segment) => (segment === '**' ? segment : partsOf(segment)));
}

function partsOf(segment: string): Part[] {
  return Array.from(segment.matchAll(/\*+|\[(.[^\]]*)\]|\\?(.)/gsu), ([text, set, character]): Part => {
    if (text.startsWith('*')) return '*';
    if (set !== undefined) return oneOf(set);
    if (text === '[') throw new SyntaxError('has a "[" without a "]"');
    return text === '?' ? () => true : (given) => given === character;
  });
}

function oneOf(set: string): Character {
  const members = set.replace(/^[!^]/, '').replace(/[\\\]^[]/g, '\\$&');
  let accepted: RegExp;
  try {
    accepted = new RegExp(`^[${/^[!^]/.test(set) ? '^' : ''}${members}]$`, 'su');
  } catch {
    throw new SyntaxError(`has a range that ends before it begins: "[${set}]"`);
  }
  return (character) => accepted.test(character);
}
