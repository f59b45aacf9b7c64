/** The option `parse` of values from watched files: a function of the application, which may await. */
import type { Clock } from '../core/ports/clock.js';
import { callback, describe, optional } from '../core/options/options.js';
import { withDeadline } from '../core/scheduling/deadline.js';
import { redactError } from '../core/errors/resilient-error.js';

/** What a parser is given beside the contents. */
export interface Parsing {
  /** Aborts after ten seconds, and when the files are closed. */
  readonly signal: AbortSignal;
}

/**
 * Finds the value in the text of a file, such as a field of JSON. It is called once for each state of the file.
 *
 * ```ts
 * const password = new SecretFile('/etc/db/login.json', { parse: (text) => JSON.parse(text).password });
 * ```
 */
export type TextParser = (text: string, parsing: Parsing) => string | Promise<string>;

/** The check of the option. Default: the text is the value. */
export const TEXT_PARSER = optional(callback<TextParser>((text) => text));

/** Enough to open a keystore, which takes a second at most. */
const TIMEOUT_MS = 10_000;

interface Surroundings {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What the parser is given: it is removed from the message of what the parser throws. */
  readonly texts: readonly string[];
  /** @param why completes "The option "parse" …". */
  readonly fault: (why: string, cause?: Error) => Error;
}

/** @throws what `fault` returns if the parser throws, rejects, or has not ended after ten seconds. */
export async function runParser<T>(
  parser: (signal: AbortSignal) => T | Promise<T>,
  { clock, signal, texts, fault }: Surroundings,
): Promise<T> {
  let isLate = false;
  const late = (): Error => {
    isLate = true;
    return fault(`has not ended after ${TIMEOUT_MS / 1_000} s`);
  };
  const options = { clock, timeoutMs: TIMEOUT_MS, signal, late };
  return withDeadline(parser, options).catch((thrown: unknown) => {
    if (isLate) throw thrown;
    // It quotes a few characters, too few to be recognized.
    if (thrown instanceof Error && thrown.name === 'SyntaxError') throw fault('failed: SyntaxError');
    const lines = texts.flatMap((text) => [text, ...text.split('\n')]);
    const cause = redactError(thrown, lines);
    throw fault(`failed: ${cause.message}`, cause);
  });
}

/** The values in the texts of one component: each text itself, or what a parser of the application finds in it. */
export class TextValues<T extends object> {
  readonly #parser: TextParser | undefined;
  readonly #make: (text: string) => T;
  readonly #fault: Surroundings['fault'];
  /** The text in which the parser found each value. */
  readonly #texts = new WeakMap<T, string>();

  /** @param make throws if a text is no value. */
  constructor(parser: TextParser | undefined, make: (text: string) => T, fault: Surroundings['fault']) {
    this.#parser = parser;
    this.#make = make;
    this.#fault = fault;
  }

  /**
   * The value in a text, at once without a parser.
   * @throws what `make` throws, and what `fault` returns, also if what the parser finds is no text.
   */
  of(text: string, ports: Pick<Surroundings, 'clock' | 'signal'>): T | Promise<T> {
    return this.#parser ? this.#found(this.#parser, text, ports) : this.#make(text);
  }

  /** The text that a parser was given for a value: as secret as the value. */
  secretsOf(value: T): readonly string[] {
    const text = this.#texts.get(value);
    return text === undefined ? [] : [text];
  }

  async #found(parser: TextParser, text: string, ports: Pick<Surroundings, 'clock' | 'signal'>): Promise<T> {
    const surroundings = { ...ports, texts: [text], fault: this.#fault };
    const found: unknown = await runParser((signal) => parser(text, { signal }), surroundings);
    if (typeof found !== 'string' || found.trim() === '') {
      // Not the value: it may be the secret as a number.
      const got =
        typeof found === 'string'
          ? 'an empty one'
          : found === undefined
            ? 'undefined'
            : describe(Object(found));
      throw this.#fault(`must return a text, got ${got}`);
    }
    const value = this.#make(found);
    this.#texts.set(value, text);
    return value;
  }
}
